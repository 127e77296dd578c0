/** What is stored comes back unchanged: bodies, headers, fingerprints, descriptions. */
import assert from 'node:assert/strict'
import type { Header, Outcome } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { answer, bytes, own, plain, recordOf, request, retentionMs, retryNow, rowIn, sameBytes } from '../fixture.ts'
import { act, seen } from '../fixture.ts'

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
/** Below the limit of 1 MiB, above every page and packet size on the way. Without a pattern, so that it does not compress. */
const large = Uint8Array.from({ length: 900 * 1024 }, (_, at) => (Math.imul(at + 1, 2_654_435_761) >>> 13) & 0xff)

const bodies: readonly (readonly [name: string, body: Uint8Array])[] = [
  ['an empty body', new Uint8Array(0)],
  ['one NUL', Uint8Array.of(0)],
  ['NUL between text', bytes('a\0b\0')],
  ['every byte', everyByte],
  ['bytes that are no UTF-8', Uint8Array.of(0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80)],
  ['surrogate pairs', bytes('\ud83d\udcb6 \ud834\udd1e')],
  ['JSON with __proto__', bytes('{"__proto__":{"a":1},"constructor":null}')],
  ['what looks like an escape', bytes('\\x00 \\u0000 %00 \' " $1 ?')],
  ['900 KB', large],
]

const headers: readonly Header[] = [
  ['Link', '</a>; rel="next"'],
  ['Vary', 'Accept'],
  ['Link', '</b>; rel="prev"'],
  ['vary', 'Origin'],
  ['X-Empty', ''],
  ['__proto__', 'kept'],
  ['X-Latin', 'caf\u00e9 "quoted", comma; \\'],
]

export const byteCases: readonly StoreCase[] = [
  {
    name: 'gives every kind of body back byte for byte, to claim, read and inspect',
    async run(harness) {
      const store = await harness.open()
      for (const [name, body] of bodies) {
        const claim = await own(store, name)
        assert.equal(await store.complete(claim, answer('', { body }), retentionMs), 'written', name)
        const other = await harness.open()
        sameBytes((await recordOf(other, claim.id)).outcome?.body, body)
        sameBytes(seen(await other.claim(request(name))).outcome?.body, body)
        sameBytes((await other.inspect(claim.id)).record?.outcome?.body, body)
      }
    },
  },
  {
    name: 'tells a body that was not kept from an empty one',
    async run(harness) {
      const store = await harness.open()
      const over = await own(store, 'over')
      await store.complete(over, answer('', { body: undefined, status: 200 }), retentionMs)
      const { outcome } = await recordOf(store, over.id)
      assert.ok(outcome, 'an answer without its body is still an answer')
      assert.equal(outcome.body, undefined)
      const empty = await own(store, 'empty')
      await store.complete(empty, answer('', { body: new Uint8Array(0), status: 204 }), retentionMs)
      assert.equal((await recordOf(store, empty.id)).outcome?.body?.length, 0)
    },
  },
  {
    name: 'keeps every status, also those without a body',
    async run(harness) {
      const store = await harness.open()
      for (const status of [200, 201, 204, 205, 301, 304, 404, 422, 500, 599]) {
        const claim = await own(store, `status ${status}`)
        const outcome: Outcome = { status, headers: [], body: new Uint8Array(0), version: 1 }
        await store.complete(claim, outcome, retentionMs)
        const kept = (await recordOf(store, claim.id)).outcome
        assert.deepEqual(kept && plain(kept), plain(outcome))
      }
    },
  },
  {
    name: 'keeps headers in their order, with their spelling and all their values, and the version',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      const outcome = answer('{}', { headers, version: 7 })
      await store.complete(claim, outcome, retentionMs)
      const kept = (await recordOf(store, claim.id)).outcome
      assert.deepEqual(kept && plain(kept), plain(outcome))
    },
  },
  {
    name: "keeps a person's answer byte for byte too",
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn.unknown(harness, store, 'a')
      const outcome = answer('', { headers, body: everyByte, version: 3 })
      await store.settle(claim.id, { kind: 'happened', outcome }, act, retentionMs)
      const kept = (await recordOf(store, claim.id)).outcome
      assert.deepEqual(kept && plain(kept), plain(outcome))
    },
  },
  {
    name: 'gives fingerprints back byte for byte',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { fingerprint: everyByte })
      sameBytes((await recordOf(store, claim.id)).fingerprint, everyByte)
      sameBytes(seen(await store.claim(request('a'))).fingerprint, everyByte)
    },
  },
  {
    name: 'is not changed by a caller that changes its own buffers, or what it was given',
    async run(harness) {
      const store = await harness.open()
      const fingerprint = Buffer.from('v1 mine')
      const body = Buffer.from('the answer')
      const claim = await own(store, 'a', { fingerprint })
      await store.complete(claim, answer('', { body }), retentionMs)
      const given = await recordOf(store, claim.id)
      for (const buffer of [fingerprint, body, given.fingerprint, given.outcome?.body]) buffer?.fill(0)
      const kept = await recordOf(store, claim.id)
      sameBytes(kept.fingerprint, bytes('v1 mine'))
      sameBytes(kept.outcome?.body, bytes('the answer'))
    },
  },
  {
    name: 'keeps descriptions and error codes as they were written',
    async run(harness) {
      const store = await harness.open()
      for (const text of ['order 7', '\u20ac 12,00 \u2192 \ud83d\udcb6', "it's; -- $1 ?", 'x'.repeat(80)]) {
        const claim = await own(store, text, { description: text })
        await store.fail(claim, { ...retryNow, errorCode: text })
        const record = await recordOf(store, claim.id)
        assert.deepEqual([record.description, record.lastErrorCode], [text, text])
      }
    },
  },
]
