/** Which headers a replay carries, and what a retry that accepts less gets. */
import assert from 'node:assert/strict'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { type Header, systemClock } from 'latchkey'
import type { AdapterCase, AdapterHarness } from '../adapter-harness.ts'
import type { Received, SentRequest } from './client.ts'
import { answer, assertReplay, counted, created, withApp, route, type AppOptions } from './fixture.ts'

interface Pair {
  readonly first: Received
  readonly again: Received
}

interface Twice extends AppOptions {
  readonly headers: readonly Header[]
  readonly body?: string | Uint8Array
  readonly sent?: SentRequest
  readonly resent?: SentRequest
}

async function twice(
  harness: AdapterHarness,
  { headers, body = 'done', sent, resent, ...options }: Twice,
  check: (pair: Pair) => void,
): Promise<void> {
  const count = counted()
  await withApp(
    harness,
    latchkey => [
      route(latchkey.guarded('orders.create', { onFailure: 'rerun' }), answer(201, body, headers), { count }),
    ],
    async ({ post }) => {
      const first = await post('/orders', { key: 'k', ...sent })
      check({ first, again: await post('/orders', { key: 'k', ...resent }) })
      assert.equal(count.runs, 1)
    },
    options,
  )
}

const secrets: readonly Header[] = [
  ['Set-Cookie', 'session=1; HttpOnly'],
  ['Set-Cookie', 'theme=dark'],
  ['X-Request-Id', 'first-request'],
  ['RateLimit-Remaining', '41'],
  ['Access-Control-Allow-Origin', 'https://first.example'],
  ['WWW-Authenticate', 'Bearer'],
  ['X-Auth-Token', 'secret'],
  ['X-Access-Token', 'secret'],
  ['X-Refresh-Token', 'secret'],
  ['X-CSRF-Token', 'secret'],
  ['X-XSRF-Token', 'secret'],
  ['X-Session-Id', 'secret'],
  ['X-Session-Token', 'secret'],
  ['X-Api-Key', 'secret'],
  ['DPoP-Nonce', 'secret'],
  ['Clear-Site-Data', '"cache"'],
  ['Authentication-Info', 'nextnonce="1"'],
  ['Proxy-Status', 'cdn'],
]

const kept: readonly Header[] = [
  ['Location', '/orders/1'],
  ['ETag', '"v1"'],
  ['Content-Type', 'text/plain; charset=utf-8'],
  ['X-Order', 'A-1'],
]

const rules: readonly AdapterCase[] = [
  {
    name: 'replays Location, ETag, Content-Type and headers of its own, and marks the replay as not to be cached',
    run: harness =>
      twice(harness, { headers: kept }, ({ first, again }) => {
        assertReplay(first, again)
        for (const [name, value] of kept) assert.equal(again.header(name), value, name)
        assert.equal(first.header('Cache-Control'), undefined)
        assert.equal(again.header('Cache-Control'), 'no-store')
        assert.equal(again.header('Content-Length'), '4')
      }),
  },
  {
    name: 'gives cookies, credentials and facts of one exchange to the first caller only',
    run: harness =>
      twice(harness, { headers: secrets }, ({ first, again }) => {
        assertReplay(first, again)
        assert.deepEqual(first.headers('Set-Cookie'), ['session=1; HttpOnly', 'theme=dark'])
        for (const [name] of secrets)
          assert.ok(first.header(name) !== undefined && again.header(name) === undefined, name)
      }),
  },
  {
    name: 'gives what the site names in neverStore to the first caller only',
    run(harness) {
      const headers: readonly Header[] = [
        ['X-Ticket', '7'],
        ['X-Order', 'A-1'],
      ]
      return twice(harness, { headers, http: { neverStore: ['x-tickeT'] } }, ({ first, again }) => {
        assertReplay(first, again)
        assert.deepEqual([first.header('X-Ticket'), again.header('X-Ticket')], ['7', undefined])
        assert.equal(again.header('X-Order'), 'A-1')
      })
    },
  },
  {
    name: 'keeps every value of Link and Vary',
    run: harness =>
      twice(
        harness,
        {
          headers: [
            ['Link', '</a>; rel=next'],
            ['Link', '</b>; rel=prev'],
            ['Vary', 'Accept'],
            ['Vary', 'Accept-Language'],
          ],
        },
        ({ first, again }) => {
          for (const name of ['Link', 'Vary']) {
            assert.equal(again.headers(name).join(', '), first.headers(name).join(', '))
            assert.equal(again.headers(name).join(', ').split(',').length, 2)
          }
        },
      ),
  },
  {
    name: "keeps the handler's own Cache-Control on a replay",
    run: harness =>
      twice(harness, { headers: [['Cache-Control', 'private, max-age=60']] }, ({ again }) => {
        assert.equal(again.header('Cache-Control'), 'private, max-age=60')
      }),
  },
  {
    name: 'sends what outer middleware sets on both, and once',
    run: harness =>
      twice(harness, { headers: [['X-Order', 'A-1']], outerHeaders: [['X-Outer', 'always']] }, ({ first, again }) => {
        assert.deepEqual([first.headers('X-Outer'), again.headers('X-Outer')], [['always'], ['always']])
        assert.equal(again.header('X-Order'), 'A-1')
      }),
  },
  {
    name: 'does not keep what outer middleware had set before Latchkey began',
    async run(harness) {
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', { onFailure: 'rerun' }), answer(201, 'done', [['X-Order', 'A-1']])),
        ],
        async ({ post, store, id }) => {
          await post('/orders', { key: 'k' })
          const names =
            (await store.read(id('orders.create', 'k')))?.outcome?.headers.map(([name]) => name.toLowerCase()) ?? []
          assert.ok(names.includes('x-order') && !names.includes('x-outer'), names.join())
        },
        { outerHeaders: [['X-Outer', 'always']] },
      )
    },
  },
  {
    name: 'tells when the answer expires where that is asked for, on the first answer and on the replay',
    run: harness =>
      twice(harness, { headers: [], http: { expiresHeader: true } }, ({ first, again }) => {
        for (const one of [first, again]) {
          const leftMs = Date.parse(one.header('Idempotency-Key-Expires-At') ?? '') - systemClock.nowMs()
          assert.ok(leftMs > 23 * 3_600_000 && leftMs < 25 * 3_600_000, one.header('Idempotency-Key-Expires-At'))
        }
        assertSameExpiry(first, again)
      }),
  },
  {
    name: 'tells the same expiry of an atomic answer first and again',
    needs: ['transactional'],
    async run(harness) {
      const database = await harness.transactional?.()
      assert.ok(database !== undefined, 'the harness provides a transactional store')
      try {
        await withApp(
          harness,
          latchkey => [route(latchkey.atomic('orders.create'), created(1))],
          async ({ post }) =>
            assertSameExpiry(await post('/orders', { key: 'k' }), await post('/orders', { key: 'k' })),
          { store: database.store, http: { expiresHeader: true } },
        )
      } finally {
        await database.close()
      }
    },
  },
]

function assertSameExpiry(first: Received, again: Received): void {
  assertReplay(first, again)
  const [before, after] = [first, again].map(one => one.header('Idempotency-Key-Expires-At'))
  assert.ok(before !== undefined, 'the first answer says when it expires')
  assert.equal(after, before)
}

const plain = 'a line that compresses. '.repeat(40)

const encodings: readonly AdapterCase[] = (
  [
    ['gzip', gzipSync(plain)],
    ['br', brotliCompressSync(plain)],
  ] as const
).flatMap(([coding, bytes]): AdapterCase[] => [
  {
    name: `replays ${coding} bytes with their Content-Encoding to a retry that accepts them`,
    run: harness =>
      twice(
        harness,
        { headers: [['Content-Encoding', coding]], body: bytes, sent: accepting(coding), resent: accepting(coding) },
        ({ first, again }) => {
          assertReplay(first, again)
          assert.equal(again.header('Content-Encoding'), coding)
        },
      ),
  },
  {
    name: `decodes ${coding} bytes for a retry that does not accept them, and keeps Vary`,
    run: harness =>
      twice(
        harness,
        {
          headers: [
            ['Content-Encoding', coding],
            ['Vary', 'Accept-Encoding'],
          ],
          body: bytes,
          sent: accepting(coding),
          resent: accepting('identity'),
        },
        ({ first, again }) => {
          assert.ok(first.body.equals(bytes))
          assert.equal(again.body.toString(), plain)
          assert.deepEqual([again.header('Content-Encoding'), again.header('Vary')], [undefined, 'Accept-Encoding'])
        },
      ),
  },
])

function accepting(coding: string): SentRequest {
  return { headers: { 'accept-encoding': coding } }
}

export const headerCases: readonly AdapterCase[] = [...rules, ...encodings]
