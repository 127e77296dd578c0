/** What becomes of a message that an operator has marked, whichever store it is. Run by a test file per store. */
import { expect, it } from 'vitest'
import { inbox, type InboxMessage, parkedMessages } from '../../src/inbox/index.ts'
import { act, type Ground, guardedInbox, newConsumer, order, quiet } from './fixture.ts'

const fails = () => Promise.reject(new Error('the ledger is closed'))

export function itRedrives(ground: () => Ground): void {
  it('runs a marked message as it was delivered, and forgets its copy when it is done', async () => {
    const { receive, redriven, parked, consumer, runs } = guardedInbox(ground().store, { attemptsMax: 1 })
    const handler = (_: unknown, message: InboxMessage) => runs.push(message)
    const given = { ...order('1', { order: 1, note: 'caf\u00e9' }), contentType: 'application/json', position: 'o/1/2' }
    const result = await receive(given, fails)
    const id = result.kind === 'parked' ? result.id : ''
    expect(await redriven(handler)).toEqual([])
    expect(await parked.redrive(id, act)).toEqual({ kind: 'redriven' })
    expect(await redriven(handler)).toEqual([{ id, result: { kind: 'done' } }])
    expect(runs).toEqual([given])
    expect(await redriven(handler)).toEqual([])
    expect((await parked.list({ consumer })).messages).toEqual([])
    expect(await parked.inspect(id)).toMatchObject({ message: undefined, audit: [{ act: 'redrive', ...act }] })
    expect(await receive(given, fails)).toEqual({ kind: 'duplicate' })
  })

  it('hands bytes to the handler as bytes', async () => {
    const { receive, redriven, parked, runs } = guardedInbox(ground().store, { attemptsMax: 1 })
    const data = Uint8Array.of(0, 255, 1)
    const result = await receive({ source: 's', id: '1', data }, fails)
    await parked.redrive(result.kind === 'parked' ? result.id : '', act)
    await redriven((_: unknown, message: InboxMessage) => runs.push(message))
    expect(runs.map(message => [...(message.data as Uint8Array)])).toEqual([[0, 255, 1]])
  })

  it('gives a marked message its attempts anew, waits between them, and parks it again after the last', async () => {
    const { store } = ground()
    const options = { attemptsMax: 2, backoffMs: 1 }
    const { receive, redriven, parked, consumer } = guardedInbox(store, options)
    await receive(order('1'), fails)
    const result = await receive(order('1'), fails)
    const id = result.kind === 'parked' ? result.id : ''
    await parked.redrive(id, act)
    expect(await redriven(fails, { limit: 1 })).toMatchObject([{ result: { kind: 'retry', cause: 'failed' } }])
    await expect
      .poll(() => redriven(fails, { limit: 1 }), { timeout: 10_000 })
      .toMatchObject([{ id, result: { kind: 'parked', cause: 'attempts' } }])
    expect((await parked.list({ consumer })).messages).toMatchObject([{ attempts: 4, times: 2, redrive: undefined }])
    expect(await redriven(fails)).toEqual([])
  })

  it('runs a message without an id under the one that an operator gives it, and once', async () => {
    const { store, book, booked } = ground()
    const latchkey = quiet(store)
    const consumer = newConsumer()
    const { receive, redriven } = inbox(latchkey.atomic('orders.book'), { consumer })
    const parked = parkedMessages(latchkey)
    const handler = ({ tx }: { tx: unknown }) => book(tx, consumer)
    const result = await receive(order(undefined), handler)
    const id = result.kind === 'parked' ? result.id : ''
    expect(await parked.redrive(id, act)).toEqual({ kind: 'needs-id' })
    expect(await parked.redrive(id, act, { as: 'order-1' })).toEqual({ kind: 'redriven' })
    expect(await redriven(handler)).toEqual([{ id, result: { kind: 'done' } }])
    expect(await receive(order('order-1'), handler)).toEqual({ kind: 'duplicate' })
    expect(await booked(consumer)).toBe(1)
  })

  it('parks a marked message again that is still another than the first of its id, and runs it under another', async () => {
    const { receive, redriven, parked, consumer, runs } = guardedInbox(ground().store)
    const handler = (_: unknown, message: InboxMessage) => runs.push(message)
    await receive(order('1'), () => {})
    const result = await receive(order('1', { order: 2 }), handler)
    const id = result.kind === 'parked' ? result.id : ''
    await parked.redrive(id, act)
    expect(await redriven(handler)).toEqual([{ id, result: { kind: 'parked', cause: 'mismatch', id } }])
    expect(runs).toEqual([])
    await parked.redrive(id, act, { as: '2' })
    expect(await redriven(handler)).toEqual([{ id, result: { kind: 'done' } }])
    expect((await parked.list({ consumer })).messages).toEqual([])
  })

  it('takes a message that was parked as unknown once its row is settled, without an operator', async () => {
    const over = { onFailure: 'hold', onUnknown: 'park' } as const
    const { receive, redriven, latchkey, consumer, parked, runs } = guardedInbox(ground().store, over)
    const handler = (_: unknown, message: InboxMessage) => runs.push(message)
    for (const id of ['1', '2']) {
      expect(await receive(order(id), fails)).toMatchObject({ kind: 'parked', cause: 'unknown' })
    }
    expect(await redriven(handler)).toEqual([])
    const [first, second] = (await latchkey.list({ scope: consumer })).records
    await latchkey.settle({ id: first?.id ?? '' }, { kind: 'never-happened' }, act)
    await latchkey.settle({ id: second?.id ?? '' }, { kind: 'happened', status: 204, json: undefined }, act)
    const kinds = (await redriven(handler)).map(({ result }) => result.kind)
    expect(kinds.toSorted()).toEqual(['done', 'duplicate'])
    expect(runs).toHaveLength(1)
    expect((await parked.list({ consumer })).messages).toEqual([])
  })

  it('discards a message for good', async () => {
    const { receive, redriven, parked } = guardedInbox(ground().store)
    const result = await receive(order(undefined), () => {})
    const id = result.kind === 'parked' ? result.id : ''
    expect(await parked.discard(id, act)).toEqual({ kind: 'discarded' })
    expect(await parked.redrive(id, act, { as: '1' })).toEqual({ kind: 'not-found' })
    expect(await redriven(fails)).toEqual([])
    expect((await parked.inspect(id)).audit).toMatchObject([{ act: 'discard', ...act }])
  })
}
