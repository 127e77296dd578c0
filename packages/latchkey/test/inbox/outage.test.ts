import { describe, expect, it } from 'vitest'
import { inbox, parkedMessages } from '../../src/inbox/index.ts'
import { LatchkeyError } from '../../src/ports/errors.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { leapingClock } from '../engine/fake-clock.ts'
import { brief, faultyStore, gate, rejects } from '../engine/fixture.ts'
import { present } from '../present.ts'
import { act, guardedInbox, newConsumer, order, quiet } from './fixture.ts'

describe('a delivery while the store is away', () => {
  it('runs nothing, says that the store is down, and runs when it is back', async () => {
    const faulty = faultyStore()
    const { receive, runs } = guardedInbox(faulty.store)
    const handler = () => runs.push(order('1'))
    faulty.break('claim', rejects)
    faulty.break('read', rejects)
    for (let n = 0; n < 8; n++) {
      const result = await receive(order('1'), handler)
      expect(result).toMatchObject({ kind: 'retry', cause: 'store-down' })
      expect(result.kind === 'retry' && result.afterMs).toBeGreaterThanOrEqual(1_000)
    }
    expect(runs).toEqual([])
    faulty.mend()
    await expect.poll(() => receive(order('1'), handler), { timeout: 10_000 }).toEqual({ kind: 'done' })
    expect(runs).toHaveLength(1)
  })

  it('does not count a message as done whose outcome the store did not take', async () => {
    const faulty = faultyStore()
    const latchkey = quiet(faulty.store)
    const operation = latchkey.guarded('orders.book', { ...brief, onFailure: 'hold' })
    const { receive } = inbox(operation, { consumer: newConsumer() })
    let runs = 0
    const handler = () => void (runs += 1)
    faulty.break('complete', rejects)
    expect(await receive(order('1'), handler)).toMatchObject({ kind: 'retry', cause: 'store-down' })
    faulty.mend()
    await expect.poll(() => receive(order('1'), handler), { timeout: 10_000 }).toEqual({ kind: 'duplicate' })
    expect(runs).toBe(1)
  })

  it('does not count a message as parked before its copy is stored', async () => {
    const store = memoryStore()
    const stored = gate()
    let isDown = true
    const slow: Store = {
      ...store,
      inbox: {
        ...store.inbox,
        async park(message) {
          if (isDown) throw new Error('connection terminated')
          await stored.opened
          await store.inbox.park(message)
        },
      },
    }
    const { receive, parked, consumer } = guardedInbox(slow)
    expect(await receive(order(undefined), () => {})).toMatchObject({ kind: 'retry', cause: 'store-down' })
    isDown = false
    let result: unknown
    const receiving = receive(order(undefined), () => {}).then(ended => void (result = ended))
    await new Promise(resolve => setTimeout(resolve, 50))
    expect(result).toBeUndefined()
    stored.open()
    await receiving
    expect(result).toMatchObject({ kind: 'parked', cause: 'missing-key' })
    expect((await parked.list({ consumer })).messages).toHaveLength(1)
  })

  it('tells an outage from a failure of the handler in an atomic message', async () => {
    const faulty = faultyStore()
    const { receive } = inbox(quiet(faulty.store).atomic('orders.book'), { consumer: newConsumer(), attemptsMax: 2 })
    const fails = () => Promise.reject(new Error('no'))
    faulty.break('claim', rejects)
    faulty.break('read', rejects)
    // It was rolled back, and could not be counted.
    expect(await receive(order('1'), fails)).toMatchObject({ kind: 'retry', cause: 'store-down' })
    faulty.mend()
    expect(await receive(order('1'), fails)).toMatchObject({ kind: 'retry', cause: 'failed' })
    expect(await receive(order('1'), fails)).toMatchObject({ kind: 'parked', cause: 'attempts' })
  })

  it('leaves a marked message to a later turn, and runs it once', async () => {
    const store = memoryStore()
    let isDown = false
    const down: Store = {
      ...store,
      inbox: {
        ...store.inbox,
        take: which => (isDown ? Promise.reject(new Error('connection terminated')) : store.inbox.take(which)),
        settle: (taken, end) => (isDown ? Promise.reject(new Error('gone')) : store.inbox.settle(taken, end)),
      },
    }
    const { receive, redriven, parked } = guardedInbox(down, { leaseMs: 100 })
    const result = await receive(order(undefined), () => {})
    await parked.redrive(result.kind === 'parked' ? result.id : '', act, { as: '1' })
    let runs = 0
    const ended = await redriven(() => {
      runs += 1
      isDown = true
    })
    // It is done, whatever becomes of its copy.
    expect(ended).toMatchObject([{ result: { kind: 'done' } }])
    expect(await redriven(() => void (runs += 1))).toEqual([])
    isDown = false
    await expect
      .poll(() => redriven(() => void (runs += 1)), { timeout: 10_000 })
      .toMatchObject([{ result: { kind: 'duplicate' } }])
    expect(runs).toBe(1)
  })

  it('says that a process is closed', async () => {
    const { receive, redriven, latchkey } = guardedInbox(memoryStore())
    await latchkey.close()
    expect(await receive(order('1'), () => {})).toMatchObject({ kind: 'retry', cause: 'closed' })
    expect(await redriven(() => {})).toEqual([])
  })

  it('says that the process is overloaded, which is no outage', async () => {
    const store = memoryStore()
    const full: Store = { ...store, claim: () => Promise.reject(new LatchkeyError('overloaded', 'the queue is full')) }
    const { receive } = guardedInbox(full)
    expect(await receive(order('1'), () => {})).toMatchObject({ kind: 'retry', cause: 'overloaded' })
  })

  it('says that a limit of its scope is reached', async () => {
    const latchkey = quiet(memoryStore(), { limits: { newKeysPerMinute: 1 } })
    const { receive } = guardedInbox(memoryStore(), { latchkey })
    expect(await receive(order('1'), () => {})).toEqual({ kind: 'done' })
    expect(await receive(order('2'), () => {})).toMatchObject({ kind: 'retry', cause: 'limited' })
  })
})

describe('a message on which its owners die', () => {
  it('is parked unrun once it was tried as often as it may be', async () => {
    const clock = leapingClock()
    const store = memoryStore({ clock })
    const consumer = newConsumer()
    const forever = () => new Promise(() => {})
    for (const started of [1, 2]) {
      const { receive, runs } = guardedInbox(store, { consumer, attemptsMax: 2 })
      void receive(order('1'), () => {
        runs.push(order('1'))
        return forever()
      })
      await expect.poll(() => runs.length, { message: `process ${started}` }).toBe(1)
      clock.leap(60_000)
    }
    const { receive, runs, latchkey } = guardedInbox(store, { consumer, attemptsMax: 2 })
    expect(await receive(order('1'), () => runs.push(order('1')))).toMatchObject({ kind: 'parked', cause: 'attempts' })
    expect(runs).toEqual([])
    const { messages } = await parkedMessages(latchkey).list({ consumer })
    expect(present(messages[0])).toMatchObject({ attempts: 3 })
  })
})
