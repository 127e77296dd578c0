/** What becomes of a delivery, whichever store it is. Run by a test file per store. */
import { expect, it } from 'vitest'
import { json, notExecuted } from '../../src/index.ts'
import { inbox, type InboxMessage, parkedMessages } from '../../src/inbox/index.ts'
import { gate } from '../engine/fixture.ts'
import { act, type Ground, guardedInbox, newConsumer, order, quiet } from './fixture.ts'

const fails = () => Promise.reject(new Error('the ledger is closed'))

export function itReceives(ground: () => Ground): void {
  itRunsOnce(ground)
  itParks(ground)
  itRetries(ground)
  itCountsAttempts(ground)
  itRunsDefinitions(ground)
}

function itRunsOnce(ground: () => Ground): void {
  it('runs a guarded message once, and answers every other delivery as a duplicate', async () => {
    const { receive, runs } = guardedInbox(ground().store)
    const handler = (_: unknown, message: InboxMessage) => runs.push(message)
    expect(await receive(order('1'), handler)).toEqual({ kind: 'done' })
    expect(await receive(order('1'), handler)).toEqual({ kind: 'duplicate' })
    expect(runs).toEqual([order('1')])
  })

  it('commits an atomic message with what it wrote, once', async () => {
    const { store, book, booked } = ground()
    const consumer = newConsumer()
    const { receive } = inbox(quiet(store).atomic('orders.book'), { consumer })
    const label = `atomic ${consumer}`
    const deliver = () => receive(order('1'), ({ tx }) => book(tx, label))
    expect(await deliver()).toEqual({ kind: 'done' })
    expect(await deliver()).toEqual({ kind: 'duplicate' })
    expect(await booked(label)).toBe(1)
  })

  it('runs one message for each of two consumers, and one id of each of two sources', async () => {
    const { store } = ground()
    const [one, two] = [guardedInbox(store), guardedInbox(store)]
    expect(await one.receive(order('1'), () => {})).toEqual({ kind: 'done' })
    expect(await two.receive(order('1'), () => {})).toEqual({ kind: 'done' })
    expect(await one.receive({ ...order('1'), source: 'orders-eu' }, () => {})).toEqual({ kind: 'done' })
    // ("a", "bc") and ("ab", "c") are two.
    expect(await one.receive({ ...order('bc'), source: 'a' }, () => {})).toEqual({ kind: 'done' })
    expect(await one.receive({ ...order('c'), source: 'ab' }, () => {})).toEqual({ kind: 'done' })
  })

  it('takes a message for the same whatever its headers, its position and the order of its JSON are', async () => {
    const { receive } = guardedInbox(ground().store)
    const first = {
      source: 's',
      id: '1',
      type: 't',
      data: { a: 1, b: 2 },
      headers: { 'x-try': '1' },
      position: 's/0/1',
    }
    expect(await receive(first, () => {})).toEqual({ kind: 'done' })
    const again = { ...first, data: { b: 2, a: 1 }, headers: { 'x-try': '2' }, position: 's/0/9' }
    expect(await receive(again, () => {})).toEqual({ kind: 'duplicate' })
    const bytes = Buffer.from('{"b":2,"a":1}')
    expect(await receive({ ...first, data: bytes, contentType: 'application/json' }, () => {})).toEqual({
      kind: 'duplicate',
    })
  })
}

function itParks(ground: () => Ground): void {
  it.each([
    ['data', { data: { order: 2 } }],
    ['type', { type: 'order.cancelled' }],
    ['content type', { contentType: 'application/cloudevents+json' }],
  ])('parks a message whose %s differs from the first of its id, and does not run it', async (_, other) => {
    const { receive, parked, consumer, runs } = guardedInbox(ground().store)
    const handler = (__: unknown, message: InboxMessage) => runs.push(message)
    await receive(order('1'), handler)
    const result = await receive({ ...order('1'), ...other }, handler)
    expect(result).toMatchObject({ kind: 'parked', cause: 'mismatch' })
    expect(await receive({ ...order('1'), ...other }, handler)).toEqual(result)
    expect(runs).toHaveLength(1)
    const { messages } = await parked.list({ consumer })
    expect(messages).toMatchObject([{ cause: 'mismatch', messageId: '1', source: 'orders', times: 2 }])
  })

  it.each([
    ['none', undefined],
    ['an empty one', ''],
    ['one that no store can hold', 'a\0b'],
    ['half a surrogate pair', '\uD800'],
  ])('parks a message whose id is missing (%s), and never runs it', async (_, id) => {
    const { receive, parked, consumer, runs } = guardedInbox(ground().store)
    const handler = (__: unknown, message: InboxMessage) => runs.push(message)
    const message = { ...order(id), position: 'orders/3/7' }
    const result = await receive(message, handler)
    expect(result).toMatchObject({ kind: 'parked', cause: 'missing-key' })
    // Delivered again, it is the same one; at another position it is another.
    expect(await receive(message, handler)).toEqual(result)
    await receive({ ...message, position: 'orders/3/8' }, handler)
    expect(runs).toEqual([])
    const { messages } = await parked.list({ consumer, cause: 'missing-key' })
    expect(messages.map(({ times, position }) => [times, position])).toEqual([
      [2, 'orders/3/7'],
      [1, 'orders/3/8'],
    ])
    const found = await parked.inspect(messages[0]?.id ?? '')
    expect(Buffer.from(found.message?.payload ?? []).toString()).toBe('{"order":1}')
    expect(found.message?.headers).toEqual({ traceparent: '00-1' })
  })
}

function itRetries(ground: () => Ground): void {
  it('has a delivery wait that finds another one at work', async () => {
    const { store } = ground()
    const { receive, consumer } = guardedInbox(store)
    const other = guardedInbox(store, { consumer })
    const end = gate()
    const first = receive(order('1'), () => end.opened)
    const second = await other.receive(order('1'), fails)
    expect(second).toMatchObject({ kind: 'retry', cause: 'in-progress' })
    expect(second.kind === 'retry' && second.afterMs).toBeGreaterThanOrEqual(1_000)
    end.open()
    expect(await first).toEqual({ kind: 'done' })
    expect(await other.receive(order('1'), fails)).toEqual({ kind: 'duplicate' })
  })

  it('runs a guarded message again after a failure where repeating is harmless', async () => {
    const { receive } = guardedInbox(ground().store)
    const failed = await receive(order('1'), fails)
    expect(failed).toMatchObject({ kind: 'retry', cause: 'failed', error: { message: 'the ledger is closed' } })
    expect(await receive(order('1'), () => {})).toEqual({ kind: 'done' })
  })

  it('does not run a held message again until its row is settled', async () => {
    const { receive, latchkey, consumer, runs } = guardedInbox(ground().store, { onFailure: 'hold' })
    expect(await receive(order('1'), fails)).toMatchObject({ kind: 'retry', cause: 'unknown' })
    const handler = (_: unknown, message: InboxMessage) => runs.push(message)
    expect(await receive(order('1'), handler)).toMatchObject({ kind: 'retry', cause: 'unknown' })
    expect(runs).toEqual([])
    const [row] = (await latchkey.list({ scope: consumer })).records
    await latchkey.settle({ id: row?.id ?? '' }, { kind: 'never-happened' }, act)
    expect(await receive(order('1'), handler)).toEqual({ kind: 'done' })
  })

  it('runs a held message again whose handler proves that nothing happened', async () => {
    const { receive } = guardedInbox(ground().store, { onFailure: 'hold' })
    const refused = () => Promise.reject(notExecuted('connection refused'))
    expect(await receive(order('1'), refused)).toMatchObject({ kind: 'retry', cause: 'failed' })
    expect(await receive(order('1'), () => {})).toEqual({ kind: 'done' })
  })

  it('rolls back what a failed atomic message wrote, and runs it again', async () => {
    const { store, book, booked } = ground()
    const consumer = newConsumer()
    const { receive } = inbox(quiet(store).atomic('orders.book'), { consumer })
    const label = `rolled back ${consumer}`
    const failing = receive(order('1'), async ({ tx }) => {
      await book(tx, label)
      await fails()
    })
    expect(await failing).toMatchObject({ kind: 'retry', cause: 'failed' })
    expect(await booked(label)).toBe(0)
    expect(await receive(order('1'), ({ tx }) => book(tx, label))).toEqual({ kind: 'done' })
    expect(await booked(label)).toBe(1)
  })
}

function itCountsAttempts(ground: () => Ground): void {
  it.each(['guarded', 'atomic'] as const)(
    'parks a message that failed as often as it may, and runs the next (%s)',
    async kind => {
      const { store } = ground()
      const latchkey = quiet(store)
      const consumer = newConsumer()
      const options = { consumer, attemptsMax: 3, backoffMs: 100 }
      const opened =
        kind === 'guarded'
          ? inbox(latchkey.guarded('orders.book', { onFailure: 'rerun' }), options)
          : inbox(latchkey.atomic('orders.book'), options)
      const results = []
      for (let n = 0; n < 3; n++) results.push(await opened.receive(order('poison'), fails))
      expect(results).toMatchObject([
        { kind: 'retry', cause: 'failed' },
        { kind: 'retry', cause: 'failed' },
        { kind: 'parked', cause: 'attempts', error: { message: 'the ledger is closed' } },
      ])
      const waits = results.map(result => (result.kind === 'retry' ? result.afterMs : 0))
      expect(waits[0]).toBeGreaterThanOrEqual(100)
      expect(waits[0]).toBeLessThanOrEqual(125)
      expect(waits[1]).toBeGreaterThanOrEqual(200)
      expect(waits[1]).toBeLessThanOrEqual(250)
      expect(await opened.receive(order('next'), () => {})).toEqual({ kind: 'done' })
      const { messages } = await parkedMessages(latchkey).list({ consumer })
      expect(messages).toMatchObject([{ messageId: 'poison', cause: 'attempts', attempts: 3 }])
    },
  )
}

function itRunsDefinitions(ground: () => Ground): void {
  it('runs phased work once, with the input that is made of the message', async () => {
    const { store, book, booked } = ground()
    const consumer = newConsumer()
    const label = `phased ${consumer}`
    const operation = quiet(store).phased('orders.ship', { version: 1 }, async (x, input: { label: string }) => {
      await x.phase('book', tx => book(tx, input.label))
      return json(201, {})
    })
    const { receive } = inbox(operation, { consumer, input: () => ({ label }) })
    expect(await receive(order('1'))).toEqual({ kind: 'done' })
    expect(await receive(order('1'))).toEqual({ kind: 'duplicate' })
    expect(await booked(label)).toBe(1)
  })

  it('has a deferred message done as soon as it is stored', async () => {
    const { store } = ground()
    const latchkey = quiet(store)
    const consumer = newConsumer()
    const operation = latchkey.deferred('orders.export', { deadlineMs: 60_000 }, async () => json(201, {}))
    const { receive } = inbox(operation, { consumer, input: ({ data }) => data })
    expect(await receive(order('1'))).toEqual({ kind: 'done' })
    expect(await receive(order('1'))).toEqual({ kind: 'done' })
    const { records } = await latchkey.list({ scope: consumer })
    expect(records).toMatchObject([{ state: 'pending', operation: 'orders.export' }])
  })

  it('parks a message of which no input can be made, and one that is too large for an input', async () => {
    const { store } = ground()
    const latchkey = quiet(store)
    const consumer = newConsumer()
    const operation = latchkey.phased('orders.ship', { version: 1 }, async () => json(201, {}))
    const { receive } = inbox(operation, {
      consumer,
      input: ({ data }) => {
        if (data === 'nonsense') throw new Error('no order')
        return data
      },
    })
    expect(await receive(order('1', 'nonsense'))).toMatchObject({
      ...{ kind: 'parked', cause: 'input-refused', error: { message: 'no order' } },
    })
    expect(await receive(order('2', 'x'.repeat(100_000)))).toMatchObject({ kind: 'parked', cause: 'input-refused' })
    expect((await latchkey.list({ scope: consumer })).records).toEqual([])
  })

  it('parks a message for which the fingerprint of its operation throws, and runs the next', async () => {
    const consumer = newConsumer()
    const custom = ({ body }: { body: Uint8Array }) => {
      const { order } = JSON.parse(Buffer.from(body).toString())
      return String(order.toFixed(2))
    }
    const operation = quiet(ground().store).guarded('orders.book', { onFailure: 'rerun', fingerprint: { custom } })
    const { receive } = inbox(operation, { consumer })
    expect(await receive(order('1', { none: true }), fails)).toMatchObject({ kind: 'parked', cause: 'input-refused' })
    expect(await receive(order('2'), () => {})).toEqual({ kind: 'done' })
  })

  it('parks a message whose row is parked', async () => {
    const consumer = newConsumer()
    const operation = quiet(ground().store).phased('orders.ship', { version: 1, steps: 'effects' }, async x => {
      // As from JavaScript: it has no phases.
      await (x as unknown as { phase(name: string, work: () => void): Promise<void> }).phase('book', () => {})
      return json(201, {})
    })
    const { receive } = inbox(operation, { consumer, input: ({ data }) => data })
    expect(await receive(order('1'))).toMatchObject({ kind: 'parked', cause: 'row-parked' })
  })
}
