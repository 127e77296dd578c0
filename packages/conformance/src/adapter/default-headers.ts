/** A replay has the header fields that the first client got, including those that the framework or its server added. */
import assert from 'node:assert/strict'
import type { Header } from 'latchkey'
import type { AdapterCase, AdapterHarness, HandlerReply } from '../adapter-harness.ts'
import type { Received } from './client.ts'
import { answer, assertReplay, counted, withApp, route } from './fixture.ts'

/** Fields of the connection and of the time, and those that mark a replay. */
const ownOfEach = new Set([
  'date',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'idempotent-replayed',
  'cache-control',
  'latchkey-retry',
])

function fieldsOf({ rawHeaders }: Received): readonly (readonly [string, string])[] {
  return rawHeaders
    .flatMap((name, at): Header[] => (at % 2 === 0 ? [[name.toLowerCase(), rawHeaders[at + 1] ?? '']] : []))
    .filter(([name]) => !ownOfEach.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
}

async function sameFields(harness: AdapterHarness, reply: HandlerReply): Promise<void> {
  const count = counted()
  await withApp(
    harness,
    latchkey => [route(latchkey.guarded('orders.create', { onFailure: 'rerun' }), reply, { count })],
    async ({ post }) => {
      const first = await post('/orders', { key: 'k', body: { sku: 1 } })
      const again = await post('/orders', { key: 'k', body: { sku: 1 } })
      assertReplay(first, again)
      assert.deepEqual(fieldsOf(again), fieldsOf(first))
      assert.equal(count.runs, 1)
    },
  )
}

const bytes = Buffer.from([0, 255, 1, 254])
const text = Buffer.from('made')
const plain: readonly Header[] = [['X-Order', 'A-1']]

export const defaultHeaderCases: readonly AdapterCase[] = [200, 201].flatMap(status => [
  {
    name: `replays the fields of a ${status} with a text without a type`,
    run: harness => sameFields(harness, { ...head(status), kind: 'answer', body: text, asText: true }),
  } satisfies AdapterCase,
  {
    name: `replays the fields of a ${status} with bytes without a type`,
    run: harness => sameFields(harness, { ...head(status), kind: 'answer', body: bytes }),
  } satisfies AdapterCase,
  {
    name: `replays the fields of a ${status} without a body or a type`,
    run: harness => sameFields(harness, answer(status)),
  } satisfies AdapterCase,
  {
    name: `replays the fields of a ${status} with a stream without a type`,
    needs: ['stream'],
    run: harness => sameFields(harness, { ...head(status), kind: 'stream', chunks: [text, bytes], breaks: false }),
  } satisfies AdapterCase,
])

function head(status: number): { status: number; headers: readonly Header[] } {
  // With a field set by the handler and without: servers treat the two differently.
  return { status, headers: status === 200 ? [] : plain }
}
