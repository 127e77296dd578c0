/** Messages that consumers have parked: one row each, listed for operators, and discarded by them. */
import assert from 'node:assert/strict'
import type { ListedInboxMessage, ParkedInbox } from 'latchkey'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { act, assertAbout, bytes, hourMs, minuteMs, sameBytes, uuidOf } from '../fixture.ts'
import { consumer, inboxIn, parkedMessage, taken } from './fixture.ts'

async function inboxOf(harness: StoreHarness): Promise<ParkedInbox> {
  return inboxIn(await harness.open())
}

function ids(messages: readonly ListedInboxMessage[]): readonly string[] {
  return messages.map(({ id }) => id)
}

export const parkedInboxCases: readonly StoreCase[] = [
  {
    name: 'stores a parked message as it was handed in, for every handle',
    async run(harness) {
      const [one, two] = [await inboxOf(harness), await inboxOf(harness)]
      const rowId = uuidOf('row')
      for (const message of [
        parkedMessage('whole', { rowId }),
        parkedMessage('bare', {
          ...{ messageId: undefined, type: undefined, contentType: undefined, position: undefined, attempts: 0 },
          ...{ form: 'bytes', headers: {}, payload: Uint8Array.of(0, 255, 128, 10), cause: 'missing-key' },
        }),
        parkedMessage('empty', { payload: new Uint8Array() }),
      ]) {
        await one.park(message)
        const { message: found, audit } = await two.inspect(message.id)
        assert.ok(found)
        const { payload, times, firstParkedAtMs, parkedAtMs, redrive, ...rest } = found
        const { payload: expected, ...head } = message
        assert.deepEqual(rest, head)
        sameBytes(payload, expected)
        assert.deepEqual([times, redrive, firstParkedAtMs], [1, undefined, parkedAtMs])
        assert.deepEqual(audit, [])
      }
      assert.equal(await two.waiting(), 3)
    },
  },
  {
    name: 'makes one row of a message that is parked again, also by several at once, with its last cause',
    async run(harness) {
      const [one, two] = [await inboxOf(harness), await inboxOf(harness)]
      await one.park(parkedMessage('again'))
      await harness.advance(hourMs)
      const later = parkedMessage('again', { cause: 'mismatch', attempts: 12 })
      await Promise.all(Array.from({ length: 9 }, (_, n) => (n % 2 === 0 ? one : two).park(later)))
      const { messages } = await one.list({ limit: 10 })
      assert.equal(messages.length, 1)
      const [found] = messages
      assert.ok(found)
      assert.deepEqual([found.cause, found.attempts, found.times], ['mismatch', 12, 10])
      assertAbout(found.parkedAtMs - found.firstParkedAtMs, hourMs)
    },
  },
  {
    name: 'lists parked messages in the order of their parking, page by page, by consumer and by cause',
    async run(harness) {
      const inbox = await inboxOf(harness)
      const names = ['a', 'b', 'c', 'd', 'e']
      for (const name of names) await inbox.park(parkedMessage(name, { cause: name === 'c' ? 'mismatch' : 'attempts' }))
      await inbox.park(parkedMessage('of another', { consumer: 'shipping' }))
      // Parked again, it stays where it was.
      await inbox.park(parkedMessage('a'))
      const all = await inbox.list({ limit: 10, consumer })
      assert.deepEqual(
        all.messages.map(({ messageId }) => messageId),
        names,
      )
      assert.equal(all.next, undefined)
      const found: string[] = []
      let after: string | undefined
      for (let pages = 0; pages < 4; pages++) {
        const page = await inbox.list({ limit: 2, consumer, ...(after === undefined ? {} : { after }) })
        found.push(...ids(page.messages))
        after = page.next
        if (after === undefined) break
      }
      assert.deepEqual(found, ids(all.messages))
      assert.deepEqual(ids((await inbox.list({ limit: 10, cause: 'mismatch' })).messages), [uuidOf('parked c')])
      assert.deepEqual(ids((await inbox.list({ limit: 10, consumer: 'shipping' })).messages), [
        uuidOf('parked of another'),
      ])
      assert.deepEqual((await inbox.list({ limit: 10, consumer: 'nobody' })).messages, [])
      assert.equal((await inbox.list({ limit: 10 })).messages.length, 6)
    },
  },
  {
    name: 'discards a message with who did it and why, which stays, and none that is being run',
    async run(harness) {
      const inbox = await inboxOf(harness)
      const { id } = parkedMessage('gone')
      await inbox.park(parkedMessage('gone'))
      assert.deepEqual(await inbox.redrive(id, act), { kind: 'redriven' })
      await taken(inbox)
      assert.deepEqual(await inbox.discard(id, act), { kind: 'taken' })
      await harness.advance(hourMs)
      assert.deepEqual(await inbox.discard(id, { by: 'on-call', reason: 'a test order' }), { kind: 'discarded' })
      const { message, audit } = await inbox.inspect(id)
      assert.equal(message, undefined)
      assert.deepEqual(
        audit.map(({ act: what, by, reason }) => [what, by, reason]),
        [
          ['redrive', act.by, act.reason],
          ['discard', 'on-call', 'a test order'],
        ],
      )
      assertAbout(Number(audit[1]?.atMs) - Number(audit[0]?.atMs), hourMs)
      assert.deepEqual(await inbox.discard(id, act), { kind: 'not-found' })
      assert.equal((await inbox.inspect(id)).audit.length, 2)
      assert.equal(await inbox.waiting(), 0)
    },
  },
  {
    name: 'deletes no parked message by its age, nor with the erasure of a tenant',
    async run(harness) {
      const store = await harness.open()
      const inbox = inboxIn(store)
      await inbox.park(parkedMessage('old', { payload: bytes('{"tenant":"tenant-1"}') }))
      await harness.advance(1_000 * 24 * hourMs)
      await store.erasure?.mark('tenant-1')
      await store.reap({ limit: 100 })
      await harness.advance(minuteMs)
      await store.reap({ limit: 100 })
      assert.equal(await inbox.waiting(), 1)
    },
  },
]
