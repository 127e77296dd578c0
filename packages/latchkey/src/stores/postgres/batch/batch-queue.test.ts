import { describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import type { Batch } from '../connection/prepared.ts'
import type { Send } from '../connection/batch-sender.ts'
import type { QueueLimits } from './batch-queue.ts'
import { type CarriedCall, openCarrier } from './carrier.ts'

const limits: QueueLimits = {
  sizeMax: 100,
  openMax: 1_000,
  followersMax: 20_000,
  waitMsMax: 60_000,
  shareMsMax: 90_000,
}

interface Sent {
  readonly items: readonly string[]
  answer(results?: readonly (string | Promise<string>)[]): void
  fail(error: Error): void
}

interface TestBatch extends Batch {
  readonly items: readonly string[]
}

const statement = { name: '', text: '' }
const batchOf = (items: readonly string[]): TestBatch => ({
  ...{ items, statement, parameterCount: 0 },
  write() {},
  values: () => [],
  plain: () => [],
})

/** Each batch is open until the test answers it. */
function queue(
  over: Partial<QueueLimits> = {},
  mayShare?: CarriedCall<string, string>['mayShare'],
  scopeOf?: (item: string) => string,
) {
  const sent: Sent[] = []
  const timers: (() => void)[] = []
  let nowMs = 0
  const kind: CarriedCall<string, string> = {
    name: 'call',
    keyOf: item => item.split('/')[0] ?? item,
    sendAlone: item => Promise.resolve(`${item} alone`),
    many: batchOf,
    resultsOf: (_, { rows: [results = []] }) => results as readonly string[],
    ...(mayShare && { mayShare }),
    ...(scopeOf && { scopeOf }),
  }
  const send: Send = ([batch]) =>
    new Promise(resolve => {
      const { items } = batch as TestBatch
      sent.push({
        items,
        answer: (results = items.map(item => `${item}!`)) =>
          resolve([{ kind: 'answered', answer: { command: '', rows: [results], count: 0 } }]),
        fail: cause =>
          resolve([{ kind: 'failed', error: new LatchkeyError('store-unavailable', cause.message, { cause }) }]),
      })
    })
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => nowMs,
    after: (_, run) => {
      timers.push(run)
      return () => {}
    },
  }
  const call = openCarrier([send], { limits: { ...limits, ...over }, clock }).carry(kind)
  return {
    call,
    sent,
    wait: (ms: number) => {
      nowMs += ms
    },
    /** Runs the timers that are set: those of the checks on calls that wait. */
    look: () => {
      for (const run of timers.splice(0)) run()
    },
    batch: async (at: number): Promise<Sent> => {
      await expect.poll(() => sent[at], { interval: 1 }).toBeDefined()
      // Polled until it is there.
      return sent[at] as Sent
    },
  }
}

const codeOf = (call: Promise<string>) =>
  call.then(
    () => 'answered',
    (error: { code?: string }) => error.code,
  )

describe('a batch queue', () => {
  it('sends the calls of one turn together, and what arrives meanwhile with the next', async () => {
    const { call, batch } = queue()
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
    const { call, sent, batch } = queue()
    void call('a')
    const one = await batch(0)
    void call('b')
    await new Promise(resolve => setTimeout(resolve, 20))
    expect(sent).toHaveLength(1)
    one.answer()
    expect((await batch(1)).items).toEqual(['b'])
  })

  it('keeps calls with the same key, and those over the size, for the batches after', async () => {
    const { call, batch } = queue({ sizeMax: 2 })
    const calls = ['a', 'a/2', 'b', 'c', 'a/3'].map(call)
    for (const [at, items] of [['a', 'b'], ['c', 'a/2'], ['a/3']].entries()) {
      const sent = await batch(at)
      expect(sent.items).toEqual(items)
      sent.answer()
    }
    expect(await Promise.all(calls)).toEqual(['a!', 'a/2!', 'b!', 'c!', 'a/3!'])
  })

  it('goes on when a batch failed, and tells each of its members', async () => {
    const { call, batch } = queue()
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

  it('sends each member alone when its batch was refused for one of its rows', async () => {
    const { call, batch } = queue()
    const calls = ['a', 'b'].map(call)
    ;(await batch(0)).fail(Object.assign(new Error('out of range'), { code: '22008', severity: 'ERROR' }))
    expect(await Promise.all(calls)).toEqual(['a alone', 'b alone'])
    const next = call('c')
    ;(await batch(1)).answer()
    expect(await next).toBe('c!')
  })

  it('does not wait for a member that goes on alone', async () => {
    const { call, batch } = queue()
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
    const { call, batch, wait, look } = queue({ waitMsMax: 1_000 })
    void call('a')
    const one = await batch(0)
    const late = call('late')
    wait(800)
    const inTime = call('in-time')
    wait(300)
    look()
    expect(await codeOf(late)).toBe('overloaded')
    one.answer()
    const two = await batch(1)
    expect(two.items).toEqual(['in-time'])
    two.answer()
    expect(await inTime).toBe('in-time!')
  })

  it('sends what there is room for, however long the process itself stood still, and refuses the rest', async () => {
    const { call, batch, wait } = queue({ waitMsMax: 1_000, sizeMax: 2 })
    void call('a')
    const one = await batch(0)
    const late = ['b', 'c', 'd'].map(item => codeOf(call(item)))
    wait(5_000)
    one.answer()
    const two = await batch(1)
    expect(two.items).toEqual(['b', 'c'])
    two.answer()
    expect(await Promise.all(late)).toEqual(['answered', 'answered', 'overloaded'])
  })

  it('leaves room for other scopes beside a flood of one', async () => {
    const { call, batch } = queue({ openMax: 8 }, undefined, item => item.slice(0, 1))
    const flood = ['a1', 'a2', 'a3', 'a4', 'a5'].map(item => codeOf(call(item)))
    const others = ['b1', 'b2', 'c1'].map(item => codeOf(call(item)))
    const one = await batch(0)
    expect(one.items).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'])
    one.answer()
    expect(await Promise.all(flood)).toEqual(['answered', 'answered', 'answered', 'answered', 'overloaded'])
    expect(await Promise.all(others)).toEqual(['answered', 'answered', 'answered'])
    // Its places are free again.
    const again = ['a1', 'a2', 'a3', 'a4'].map(item => codeOf(call(item)))
    ;(await batch(1)).answer()
    expect(await Promise.all(again)).toEqual(['answered', 'answered', 'answered', 'answered'])
  })

  it('refuses what comes over the limit, also while members go on alone, and takes more when they have ended', async () => {
    const { call, batch } = queue({ openMax: 2 })
    const calls = ['a', 'b'].map(call)
    await expect(call('c')).rejects.toMatchObject({ code: 'overloaded' })
    let end = (_: string) => {}
    ;(await batch(0)).answer([new Promise(resolve => (end = resolve)), 'b!'])
    await calls[1]
    const fits = call('d')
    await expect(call('e')).rejects.toMatchObject({ code: 'overloaded' })
    end('a!')
    await calls[0]
    ;(await batch(1)).answer()
    expect(await fits).toBe('d!')
    const again = ['f', 'g'].map(call)
    ;(await batch(2)).answer()
    expect(await Promise.all(again)).toEqual(['f!', 'g!'])
  })
})

/** The answer to a read: every caller's. */
const always = () => true

describe('a batch queue whose calls may share an answer', () => {
  it('sends one of the calls with a key that wait together, and gives its answer to all of them', async () => {
    const { call, batch, sent } = queue({}, always)
    const calls = ['a', 'a/2', 'b', 'a/3'].map(call)
    const one = await batch(0)
    expect(one.items).toEqual(['a', 'b'])
    one.answer()
    expect(await Promise.all(calls)).toEqual(['a!', 'a!', 'b!', 'a!'])
    expect(sent).toHaveLength(1)
  })

  it('lets nobody join a call that was sent', async () => {
    const { call, batch } = queue({}, always)
    const first = call('a')
    const one = await batch(0)
    const second = call('a/2')
    one.answer(['old'])
    expect(await first).toBe('old')
    ;(await batch(1)).answer(['new'])
    expect(await second).toBe('new')
  })

  it("sends the next where an answer is the first caller's alone, and what that sees is for the rest", async () => {
    const { call, batch, sent } = queue({}, result => result !== 'won')
    const calls = Array.from({ length: 3_000 }, (_, index) => call(`hot/${index}`))
    const innocent = ['b', 'c'].map(call)
    const one = await batch(0)
    expect(one.items).toEqual(['hot/0', 'b', 'c'])
    one.answer(['won', 'b!', 'c!'])
    expect(await Promise.all(innocent)).toEqual(['b!', 'c!'])
    const two = await batch(1)
    expect(two.items).toEqual(['hot/1'])
    two.answer(['seen'])
    expect(await Promise.all(calls)).toEqual(['won', ...Array.from({ length: 2_999 }, () => 'seen')])
    expect(sent).toHaveLength(2)
  })

  it('says to those who joined a call that failed that they were never sent, by one error', async () => {
    const { call, batch } = queue({}, always)
    const calls = ['a', 'a/2', 'a/3'].map(call)
    ;(await batch(0)).fail(new Error('cut'))
    const [first, second, third] = await Promise.allSettled(calls)
    expect(first).toMatchObject({ reason: { message: 'cut' } })
    expect(second).toMatchObject({ reason: { code: 'store-unavailable', sent: false, cause: { message: 'cut' } } })
    expect(third).toEqual(second)
  })

  it('refuses those who wait behind a batch without an answer, before their caller takes them for lost', async () => {
    const { call, batch, wait, look } = queue({ waitMsMax: 1_000, shareMsMax: 1_800 }, always)
    const flying = ['a', 'a/2'].map(call)
    const one = await batch(0)
    const waiting = ['b', 'b/2'].map(call)
    wait(1_001)
    look()
    await Promise.all(waiting.map(each => expect(each).rejects.toMatchObject({ code: 'overloaded' })))
    wait(800)
    look()
    await expect(flying[1]).rejects.toMatchObject({ code: 'store-unavailable', sent: false })
    one.answer()
    expect(await flying[0]).toBe('a!')
    const next = ['a/3', 'b/3'].map(call)
    ;(await batch(1)).answer()
    expect(await Promise.all(next)).toEqual(['a/3!', 'b/3!'])
  })

  it('promotes the next of a key when the first has waited too long', async () => {
    const { call, batch, wait, look } = queue({ waitMsMax: 1_000 }, always)
    void call('x')
    const one = await batch(0)
    const late = call('a')
    wait(800)
    const others = ['a/2', 'a/3'].map(call)
    wait(300)
    look()
    one.answer()
    await expect(late).rejects.toMatchObject({ code: 'overloaded' })
    const two = await batch(1)
    expect(two.items).toEqual(['a/2'])
    two.answer()
    expect(await Promise.all(others)).toEqual(['a/2!', 'a/2!'])
  })

  it('keeps room for other keys behind a crowd, and for calls that are not behind anybody', async () => {
    const { call, batch } = queue({ openMax: 3, followersMax: 4 }, always)
    const crowd = ['a', 'a/2', 'a/3'].map(call)
    await expect(call('a/4')).rejects.toMatchObject({ code: 'overloaded' })
    const others = ['b', 'b/2', 'c'].map(call)
    await expect(call('d')).rejects.toMatchObject({ code: 'overloaded' })
    ;(await batch(0)).answer()
    expect(await Promise.all([...crowd, ...others])).toEqual(['a!', 'a!', 'a!', 'b!', 'b!', 'c!'])
    const again = ['a', 'a/2', 'a/3', 'b', 'c'].map(call)
    ;(await batch(1)).answer()
    expect(await Promise.all(again)).toEqual(['a!', 'a!', 'a!', 'b!', 'c!'])
  })
})
