import { createHook } from 'node:async_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { sharedTimers } from './clock.ts'

const after = sharedTimers(() => performance.now())

/** Collects what ran, and when. */
function recorder(): { ran: string[]; note(name: string): () => void; until(count: number): Promise<void> } {
  const ran: string[] = []
  return {
    ran,
    note: name => () => void ran.push(name),
    async until(count) {
      for (let look = 0; look < 500 && ran.length < count; look++) await pause(10)
    },
  }
}

describe('deadlines of one length', () => {
  it('run once each, in the order in which they were set, and not before their time', async () => {
    const { ran, note, until } = recorder()
    const startedAt = performance.now()
    const spent: number[] = []
    after(40, note('first'))
    await pause(20)
    after(40, note('second'))
    after(40, () => {
      spent.push(performance.now() - startedAt)
      ran.push('third')
    })
    await until(3)
    await pause(60)
    expect(ran).toEqual(['first', 'second', 'third'])
    // A timer may fire a fraction early.
    expect(spent[0]).toBeGreaterThan(55)
  })

  it('do not run when cancelled, wherever they stand', async () => {
    const { ran, note, until } = recorder()
    const cancels = ['a', 'b', 'c', 'd'].map(name => after(31, note(name)))
    cancels[0]?.()
    cancels[2]?.()
    cancels[2]?.()
    await until(2)
    cancels[1]?.()
    await pause(50)
    expect(ran).toEqual(['b', 'd'])
  })

  it('hold nothing of those that came after them once they are cancelled', async () => {
    setFlagsFromString('--expose-gc')
    // Only a context made after the flag was set has it.
    const collect = runInNewContext('gc') as () => void
    const first = after(60_000, () => {})
    const later = (() => {
      const run = () => {}
      const cancel = after(60_000, run)
      const kept = new WeakRef(run)
      first()
      cancel()
      return kept
    })()
    // What a WeakRef was made of lives on until the end of the turn.
    await pause(1)
    collect()
    expect(later.deref()).toBeUndefined()
    first()
  })

  it('are kept when the one that the timer was set for is cancelled', async () => {
    const { ran, note, until } = recorder()
    // Past the count after which a length keeps its timer.
    for (let i = 0; i < 20; i++) after(33, note('never'))()
    await pause(15)
    after(33, note('kept'))
    await until(1)
    expect(ran).toEqual(['kept'])
  })

  it('may be set and cancelled while one of them runs', async () => {
    const { ran, note, until } = recorder()
    let cancelLast = () => {}
    after(37, () => {
      ran.push('first')
      cancelLast()
      after(37, note('again'))
    })
    after(37, note('second'))
    cancelLast = after(37, note('never'))
    await until(3)
    await pause(60)
    expect(ran).toEqual(['first', 'second', 'again'])
  })

  it('wait for their whole time when they are set while one of them runs', async () => {
    const { ran, note, until } = recorder()
    let setAt = 0
    let waited = 0
    after(45, () => {
      setAt = performance.now()
      after(45, () => {
        waited = performance.now() - setAt
        note('again')()
      })
    })
    await until(1)
    expect(ran).toEqual(['again'])
    expect(waited).toBeGreaterThan(40)
  })
})

it('keeps lengths apart', async () => {
  const { ran, note, until } = recorder()
  after(60, note('long'))
  after(20, note('short'))
  after(0, note('at once'))
  await until(3)
  expect(ran).toEqual(['at once', 'short', 'long'])
})

it('clears the timer of the runtime for a length that was asked for once', async () => {
  // Timers that do not keep the process alive are in no list of Node's.
  const live = new Set<number>()
  const hook = createHook({
    init: (id, type) => void (type === 'Timeout' && live.add(id)),
    destroy: id => void live.delete(id),
  }).enable()
  for (let i = 0; i < 100; i++) after(10_000 + i / 7, () => {})()
  const set = [...live]
  const left = () => set.filter(id => live.has(id)).length
  for (let look = 0; look < 100 && left() > 0; look++) await pause(5)
  hook.disable()
  expect(set).toHaveLength(100)
  expect(left()).toBe(0)
})
