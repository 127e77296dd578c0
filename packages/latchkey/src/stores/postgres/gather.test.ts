import { describe, expect, it } from 'vitest'
import { systemClock } from '../../ports/clock.ts'
import { gather, type GatherLimits } from './gather.ts'

const limits: GatherLimits = { sizeMax: 100, openMax: 1_000, waitMsMax: 60_000 }

interface Sent {
  readonly items: readonly string[]
  answer(results?: readonly (string | Promise<string>)[]): void
  fail(error: Error): void
}

/** Each batch stands still until the test answers it. */
function gatherer(over: Partial<GatherLimits> = {}) {
  const sent: Sent[] = []
  let nowMs = 0
  const call = gather<string, string>({
    name: 'call',
    keyOf: item => item.split('/')[0] ?? item,
    limits: { ...limits, ...over },
    clock: { ...systemClock, monotonicMs: () => nowMs },
    send: items =>
      new Promise((resolve, reject) => {
        sent.push({ items, answer: (results = items.map(item => `${item}!`)) => resolve(results), fail: reject })
      }),
  })
  return {
    call,
    sent,
    wait: (ms: number) => {
      nowMs += ms
    },
    batch: async (at: number): Promise<Sent> => {
      await expect.poll(() => sent[at], { interval: 1 }).toBeDefined()
      // Polled until it is there.
      return sent[at] as Sent
    },
  }
}

describe('a gatherer', () => {
  it('sends the calls of one turn together, and what arrives meanwhile with the next', async () => {
    const { call, batch } = gatherer()
    const first = ['a', 'b'].map(call)
    const one = await batch(0)
    const second = ['c', 'd', 'e'].map(call)
    one.answer()
    expect(await Promise.all(first)).toEqual(['a!', 'b!'])
    const two = await batch(1)
    expect([one.items, two.items]).toEqual([
      ['a', 'b'],
      ['c', 'd', 'e'],
    ])
    two.answer()
    expect(await Promise.all(second)).toEqual(['c!', 'd!', 'e!'])
  })

  it('has one batch under way at a time', async () => {
    const { call, sent, batch } = gatherer()
    void call('a')
    const one = await batch(0)
    void call('b')
    await new Promise(resolve => setTimeout(resolve, 20))
    expect(sent).toHaveLength(1)
    one.answer()
    expect((await batch(1)).items).toEqual(['b'])
  })

  it('keeps calls with the same key, and those over the size, for the batches after', async () => {
    const { call, batch } = gatherer({ sizeMax: 2 })
    const calls = ['a', 'a/2', 'b', 'c', 'a/3'].map(call)
    for (const [at, items] of [['a', 'b'], ['a/2', 'c'], ['a/3']].entries()) {
      const sent = await batch(at)
      expect(sent.items).toEqual(items)
      sent.answer()
    }
    expect(await Promise.all(calls)).toEqual(['a!', 'a/2!', 'b!', 'c!', 'a/3!'])
  })

  it('goes on when a batch failed, and tells each of its members', async () => {
    const { call, batch } = gatherer()
    const calls = ['a', 'b'].map(call)
    ;(await batch(0)).fail(new Error('cut'))
    expect(await Promise.allSettled(calls)).toMatchObject([
      { reason: { message: 'cut' } },
      { reason: { message: 'cut' } },
    ])
    const next = call('c')
    ;(await batch(1)).answer()
    expect(await next).toBe('c!')
  })

  it('does not wait for a member that goes on alone', async () => {
    const { call, batch } = gatherer()
    const [slow, quick] = ['slow', 'quick'].map(call)
    let end = (_: string) => {}
    ;(await batch(0)).answer([new Promise(resolve => (end = resolve)), 'quick!'])
    expect(await quick).toBe('quick!')
    const next = call('next')
    ;(await batch(1)).answer()
    expect(await next).toBe('next!')
    end('slow!')
    expect(await slow).toBe('slow!')
  })

  it('drops what has waited too long before it is sent', async () => {
    const { call, batch, wait } = gatherer({ waitMsMax: 1_000 })
    void call('a')
    const one = await batch(0)
    const late = call('late')
    wait(800)
    const inTime = call('in-time')
    wait(300)
    one.answer()
    await expect(late).rejects.toMatchObject({ code: 'store-unavailable', message: expect.stringMatching(/not sent/) })
    const two = await batch(1)
    expect(two.items).toEqual(['in-time'])
    two.answer()
    expect(await inTime).toBe('in-time!')
  })

  it('refuses what comes over the limit, also while members go on alone, and takes more when they have ended', async () => {
    const { call, batch } = gatherer({ openMax: 2 })
    const calls = ['a', 'b'].map(call)
    await expect(call('c')).rejects.toMatchObject({ code: 'store-unavailable' })
    let end = (_: string) => {}
    ;(await batch(0)).answer([new Promise(resolve => (end = resolve)), 'b!'])
    await calls[1]
    const fits = call('d')
    await expect(call('e')).rejects.toMatchObject({ code: 'store-unavailable' })
    end('a!')
    await calls[0]
    ;(await batch(1)).answer()
    expect(await fits).toBe('d!')
    const again = ['f', 'g'].map(call)
    ;(await batch(2)).answer()
    expect(await Promise.all(again)).toEqual(['f!', 'g!'])
  })
})
