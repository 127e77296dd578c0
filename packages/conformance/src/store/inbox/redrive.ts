/** Messages that operators have marked: taken by one process at a time, and ended by the one that has them. */
import assert from 'node:assert/strict'
import type { ParkedInbox } from 'latchkey'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { act, answer, hourMs, leaseMs, minuteMs, notKnown, own, retentionMs, retryNow, sameBytes } from '../fixture.ts'
import { inboxIn, parkedMessage, take, taken } from './fixture.ts'

async function marked(harness: StoreHarness, name: string): Promise<ParkedInbox> {
  const inbox = inboxIn(await harness.open())
  await inbox.park(parkedMessage(name))
  assert.deepEqual(await inbox.redrive(parkedMessage(name).id, act), { kind: 'redriven' })
  return inbox
}

export const redriveInboxCases: readonly StoreCase[] = [
  {
    name: 'hands out no message that nobody has marked, and none of another consumer or operation',
    async run(harness) {
      const inbox = await marked(harness, 'marked')
      await inbox.park(parkedMessage('waiting'))
      assert.equal(await take(inbox, { consumer: 'shipping' }), undefined)
      assert.equal(await take(inbox, { operation: 'invoices.cancel' }), undefined)
      const { message } = await taken(inbox)
      assert.deepEqual([message.messageId, message.attempts, message.redrive?.as], ['marked', 10, undefined])
      sameBytes(message.payload, parkedMessage('marked').payload)
      assert.deepEqual(message.headers, parkedMessage('marked').headers)
      assert.equal(await take(inbox), undefined)
      assert.equal(await inbox.waiting(), 1)
    },
  },
  {
    name: 'hands a marked message to one process, however many ask at once',
    async run(harness) {
      const one = await marked(harness, 'first')
      await one.park(parkedMessage('second'))
      await one.redrive(parkedMessage('second').id, act)
      const two = inboxIn(await harness.open())
      const found = await Promise.all(Array.from({ length: 20 }, (_, n) => take(n % 2 === 0 ? one : two)))
      const names = found.flatMap(each => (each === undefined ? [] : [String(each.message.messageId)]))
      assert.deepEqual(names.toSorted(), ['first', 'second'])
    },
  },
  {
    name: 'hands it out again when its lease has ended, and takes nothing from the process that lost it',
    async run(harness) {
      const inbox = await marked(harness, 'lost')
      const first = await taken(inbox)
      await harness.advance(leaseMs - minuteMs)
      assert.equal(await inbox.renew(first, leaseMs), 'written')
      await harness.advance(leaseMs - minuteMs)
      assert.equal(await take(inbox), undefined)
      await harness.advance(2 * minuteMs)
      const second = await taken(inbox)
      assert.ok(second.run > first.run)
      for (const end of [{ kind: 'done' }, { kind: 'retry', dueInMs: 0 }] as const)
        assert.equal(await inbox.settle(first, end), 'claim-lost')
      assert.equal(await inbox.renew(first, leaseMs), 'claim-lost')
      assert.equal(await inbox.settle(first, { kind: 'parked', cause: 'mismatch', attempts: 1 }), 'claim-lost')
      assert.equal(await inbox.settle(second, { kind: 'done' }), 'written')
      assert.equal((await inbox.inspect(first.message.id)).message, undefined)
      assert.equal(await inbox.settle(second, { kind: 'done' }), 'claim-lost')
    },
  },
  {
    name: 'gives a message that is tried again its time, and one that is parked again back to operators',
    async run(harness) {
      const inbox = await marked(harness, 'slow')
      const { id } = parkedMessage('slow')
      assert.equal(await inbox.settle(await taken(inbox), { kind: 'retry', dueInMs: hourMs }), 'written')
      assert.equal(await take(inbox), undefined)
      await harness.advance(hourMs + minuteMs)
      const end = { kind: 'parked', cause: 'mismatch', attempts: 13 } as const
      assert.equal(await inbox.settle(await taken(inbox), end), 'written')
      const { message } = await inbox.inspect(id)
      assert.deepEqual(
        [message?.cause, message?.attempts, message?.times, message?.redrive],
        ['mismatch', 13, 2, undefined],
      )
      await harness.advance(hourMs)
      assert.equal(await take(inbox), undefined)
      assert.equal(await inbox.waiting(), 1)
    },
  },
  {
    name: 'marks a message without an id only under one, and keeps the mark when it is parked once more',
    async run(harness) {
      const inbox = inboxIn(await harness.open())
      const keyless = parkedMessage('keyless', { messageId: undefined, cause: 'missing-key' })
      await inbox.park(keyless)
      assert.deepEqual(await inbox.redrive(keyless.id, act), { kind: 'needs-id' })
      assert.equal(await take(inbox), undefined)
      assert.deepEqual(await inbox.redrive(keyless.id, act, 'order-7'), { kind: 'redriven' })
      await inbox.park(keyless)
      const { message, audit } = await inbox.inspect(keyless.id)
      assert.equal(message?.redrive?.as, 'order-7')
      assert.deepEqual(
        audit.map(({ detail }) => detail),
        ['billing missing-key, as order-7'],
      )
      const found = await taken(inbox)
      assert.deepEqual([found.message.messageId, found.message.redrive?.as], [undefined, 'order-7'])
      assert.deepEqual(await inbox.redrive(keyless.id, act, 'order-8'), { kind: 'taken' })
      assert.deepEqual(await inbox.redrive(parkedMessage('none').id, act), { kind: 'not-found' })
    },
  },
  {
    name: 'hands out a message that was parked as unknown once its row is settled, and none whose row is gone',
    async run(harness) {
      const store = await harness.open()
      const inbox = inboxIn(store)
      const [completed, failed] = [await own(store, 'completed'), await own(store, 'failed')]
      for (const claim of [completed, failed]) {
        await store.fail(claim, notKnown)
        await inbox.park(parkedMessage(claim.id, { cause: 'unknown', rowId: claim.id }))
      }
      await inbox.park(parkedMessage('gone', { cause: 'unknown', rowId: parkedMessage('gone').id }))
      assert.equal(await take(inbox), undefined)
      assert.deepEqual(await store.settle(failed.id, { kind: 'never-happened' }, act, retentionMs), { kind: 'settled' })
      assert.equal((await taken(inbox)).message.messageId, failed.id)
      assert.equal(await take(inbox), undefined)
      const happened = { kind: 'happened', outcome: answer() } as const
      assert.deepEqual(await store.settle(completed.id, happened, act, retentionMs), { kind: 'settled' })
      assert.equal((await taken(inbox)).message.messageId, completed.id)
      assert.equal(await take(inbox), undefined)
      // Another cause is left to operators, whatever its row is.
      const other = await own(store, 'other')
      await store.fail(other, retryNow)
      await inbox.park(parkedMessage('other', { cause: 'mismatch', rowId: other.id }))
      assert.equal(await take(inbox), undefined)
    },
  },
]
