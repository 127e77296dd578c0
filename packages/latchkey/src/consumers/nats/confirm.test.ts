import { expect, it } from 'vitest'
import { confirmTogether } from './confirm.ts'

/** Time passes when it is told to. */
function start() {
  const due = new Set<() => void>()
  const waits: number[] = []
  const consumer = new AbortController()
  const answers: { resolve(): void; reject(error: Error): void }[] = []
  const confirmed = confirmTogether({
    clock: {
      after(ms, run) {
        waits.push(ms)
        due.add(run)
        return () => void due.delete(run)
      },
    },
    stopping: consumer.signal,
    request: () => new Promise<void>((resolve, reject) => answers.push({ resolve, reject })),
  })
  const elapse = async () => {
    for (const run of due) run()
    await turn()
  }
  return { confirmed, answers, elapse, due, waits, stop: () => consumer.abort() }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

it('confirms what was acknowledged before the request, and nothing that came after it', async () => {
  const { confirmed, answers, elapse } = start()
  const ended: string[] = []
  const wait = (name: string) => void confirmed().then(() => ended.push(name))
  wait('first')
  wait('second')
  expect(answers).toHaveLength(0)
  await elapse()
  wait('third')
  expect(answers).toHaveLength(1)
  expect(ended).toEqual([])
  answers[0]?.resolve()
  await turn()
  expect(ended).toEqual(['first', 'second'])
  await elapse()
  answers[1]?.resolve()
  await turn()
  expect(ended).toEqual(['first', 'second', 'third'])
})

it('asks at once when many wait', async () => {
  const { confirmed, answers, due } = start()
  const waiting = Array.from({ length: 33 }, () => confirmed())
  await turn()
  expect(answers).toHaveLength(1)
  expect(due.size).toBe(1)
  answers[0]?.resolve()
  await Promise.all(waiting.slice(0, 32))
})

it('fails for all that wait when the request is not answered, and asks again for the next', async () => {
  const { confirmed, answers, elapse } = start()
  const waiting = Promise.allSettled([confirmed(), confirmed()])
  await elapse()
  answers[0]?.reject(new Error('timeout'))
  expect((await waiting).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const next = confirmed()
  await elapse()
  answers[1]?.resolve()
  await next
})

it('asks at once when its consumer stops, and hardly waits from then on', async () => {
  const { confirmed, answers, due, waits, stop } = start()
  const before = confirmed()
  stop()
  await turn()
  expect(answers).toHaveLength(1)
  expect(due.size).toBe(0)
  answers[0]?.resolve()
  await before
  void confirmed()
  const [long = 0, short = 0] = waits
  expect(short).toBeLessThan(long / 4)
})
