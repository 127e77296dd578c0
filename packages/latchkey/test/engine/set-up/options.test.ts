import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { afterAll, describe, expect, it } from 'vitest'
import { createLatchkey, json, singleTenant } from 'latchkey'
import { captureBody as captureOnExpress, statusOf } from 'latchkey/http/express'
import { idempotent as onFetch } from 'latchkey/http/fetch'
import { idempotent as onHono } from 'latchkey/http/hono'
import { captureBody as captureOnKoa } from 'latchkey/http/koa'
import { LatchkeyModule } from 'latchkey/http/nest'
import { createRelay, functionTarget, httpTarget } from 'latchkey/outbox'
import { createReconciler, standardWebhooks, stripeWebhooks } from 'latchkey/reconcile'
import { memoryStore } from 'latchkey/stores/memory'
import { postgresStore } from 'latchkey/stores/postgres'
import { sqliteStore } from 'latchkey/stores/sqlite'
import { createWorkers } from 'latchkey/workers'
import { openPlace } from '../../processes/database.ts'

/** What plain JavaScript hands in, past the types. */
type Given = never
type Options = Record<string, unknown>

const store = memoryStore()
const latchkey = () => createLatchkey<unknown, never>({ store, scope: singleTenant })
const guarded = () => latchkey().guarded('orders.create', { onFailure: 'hold' })
const folder = await mkdtemp(join(tmpdir(), 'latchkey-options-'))
const sqlite = await openPlace(join(folder, 'place.db'))
await sqlite.migrate()
const onSqlite = () => createLatchkey<unknown, never>({ store: sqlite.store, scope: singleTenant })
const definition = async () => json(200, 1)
afterAll(async () => {
  await sqlite.close()
  await rm(folder, { recursive: true })
})
const clock = { nowMs: () => 0 }
const lookup = () => ({ kind: 'still-unknown' })
const sides = { ours: lookup, theirs: lookup, same: () => true }
const secrets = [`whsec_${Buffer.alloc(32).toString('base64')}`]

/** Takes options as JavaScript may give them. */
type Take = (options: Options) => unknown
/** What is given, and how the refusal goes on behind the owner's name. */
type Refusal = readonly [given: Options, message: string]

const tables: readonly [owner: string, take: Take, right: Options, refusals: readonly Refusal[]][] = [
  [
    'createLatchkey',
    options => createLatchkey({ store, scope: singleTenant, ...options } as Given),
    { storeTimeoutMs: 1_000, http: { profile: 'stripe', strictSyntax: true }, telemetry: undefined },
    [
      [{ storeTimeoutMS: 1 }, 'unknown option storeTimeoutMS: did you mean storeTimeoutMs?'],
      [
        { http: { profile: 'Stripe' } },
        "http.profile must be 'ietf' or 'stripe' (got 'Stripe'): did you mean 'stripe'?",
      ],
      [{ http: { expireHeader: true } }, 'unknown option http.expireHeader: did you mean http.expiresHeader?'],
      [{ http: { strictSyntax: 'yes' } }, "http.strictSyntax must be true or false (got 'yes')"],
      [{ telemetry: {} }, 'telemetry must be an object with count, observe, report (got an object)'],
      [{ storeTimeoutMs: Infinity }, 'storeTimeoutMs must be a number above 0'],
    ],
  ],
  [
    'orders.create',
    options => latchkey().guarded('orders.create', { onFailure: 'hold', ...options } as Given),
    {
      retentionMs: 30 * 86_400_000,
      keyFormat: { maxLength: 36, pattern: /^x/ },
      methods: ['PUT'],
      describe: undefined,
    },
    [
      [{ retentionMS: 1 }, 'unknown option retentionMS: did you mean retentionMs?'],
      [{ nonsense: 1 }, 'unknown option nonsense. There are retentionMs, allowShortRetention'],
      [{ onMissingKey: 'required' }, "onMissingKey must be 'refuse' or 'run-unprotected' (got 'required')"],
      [{ onFailure: 'retry' }, "onFailure must be 'hold', 'rerun' or 'store' (got 'retry')"],
      [{ fingerprint: { includes: ['a'] } }, 'unknown option fingerprint.includes: did you mean fingerprint.include?'],
      [{ fingerprint: { include: 'a' } }, "fingerprint.include must be a list (got 'a')"],
      [{ fingerprint: { headers: ['a', 1] } }, 'fingerprint.headers[1] must be a text (got 1)'],
      [
        { fingerprint: { hmac: 5 } },
        'fingerprint.hmac must be a text, bytes, or both { current, previous } of these (got a number)',
      ],
      [{ keyFormat: { pattern: '^x' } }, "keyFormat.pattern must be a regular expression (got '^x')"],
      [{ keyFormat: { maxlength: 3 } }, 'unknown option keyFormat.maxlength: did you mean keyFormat.maxLength?'],
      [{ keyFormat: [] }, "keyFormat must be 'uuid' or 'ulid', or an object of options (got a list)"],
      [{ keyFormat: 'guid' }, "keyFormat must be 'uuid' or 'ulid', or an object of options (got 'guid')"],
      [{ methods: 'POST' }, "methods must be a list (got 'POST')"],
      [{ storeStatus: [200] }, 'storeStatus must be a function (got a list)'],
      [
        { retentionMs: 1e18 },
        'retentionMs must be a number above 0 and at most 3162240000000 ms, 100 years (got 1000000000000000000)',
      ],
      [
        { retentionMs: '86400000' },
        "retentionMs must be a number above 0 and at most 3162240000000 ms, 100 years (got '86400000')",
      ],
      [{ waitMs: 2 ** 31 }, 'waitMs must be a number above 0 and at most 2147483647 ms'],
      [{ leaseMs: Number.NaN }, 'leaseMs must be a number above 0'],
      [{ bodyBytesMax: 0.5 }, 'bodyBytesMax must be a whole number from 1 to 2147483647 (got 0.5)'],
      [
        { retentionMs: null },
        'retentionMs must be a number above 0 and at most 3162240000000 ms, 100 years (got null)',
      ],
    ],
  ],
  [
    'orders.atomic',
    options => onSqlite().atomic('orders.atomic', options as Given),
    { retentionMs: 86_400_000 },
    [
      [{ leaseMs: 1_000 }, 'unknown option leaseMs'],
      [{ describe: 'it' }, "describe must be a function (got 'it')"],
      [{ tombstoneMs: -1 }, 'tombstoneMs must be a number above 0'],
    ],
  ],
  [
    'orders.phased',
    options => onSqlite().phased('orders.phased', { version: 1, ...options } as Given, definition),
    { leaseMs: 1_000, respondAsync: { deadlineMs: 1_000 } },
    [
      [{ holdMsMax: 1_000 }, 'unknown option holdMsMax'],
      [
        { respondAsync: { deadlineMS: 1 } },
        'unknown option respondAsync.deadlineMS: did you mean respondAsync.deadlineMs?',
      ],
      [{ respondAsync: true }, 'respondAsync must be an object of options (got true)'],
      [{ version: '1' }, "version must be a whole number from 1 to 1000000 (got '1')"],
      [{ respondAsync: { deadlineMs: 1e18 } }, 'respondAsync.deadlineMs must be a number above 0'],
    ],
  ],
  [
    'orders.deferred',
    options => onSqlite().deferred('orders.deferred', { deadlineMs: 1_000, ...options } as Given, definition),
    { version: 2 },
    [
      [{ waitMs: 1 }, 'unknown option waitMs'],
      [{ authorizeReplay: true }, 'authorizeReplay must be a function (got true)'],
      [{ deadlineMs: 1e18 }, 'deadlineMs must be a number above 0'],
    ],
  ],
  [
    'createWorkers',
    options => createWorkers(latchkey(), options as Given),
    { only: ['sweeper'], sweeper: { everyMs: 1_000 } },
    [
      [{ sweper: {} }, 'unknown option sweper: did you mean sweeper?'],
      [{ sweeper: { everyMS: 1 } }, 'unknown option sweeper.everyMS: did you mean sweeper.everyMs?'],
      [
        { only: ['reapr'] },
        "only[0] must be 'sweeper', 'resumer', 'reconciler', 'relay', 'reaper' or 'auditor' (got 'reapr'): did you mean 'reaper'?",
      ],
      [{ relay: { agregate: 'skip' } }, 'unknown option relay.agregate: did you mean relay.aggregate?'],
      [
        { relay: { targets: { orders: {} } } },
        'relay.targets.orders must be a target (httpTarget, functionTarget or a broker) with deliver (got an object)',
      ],
      [{ reconciler: {} }, 'reconciler needs use: createReconciler(latchkey)'],
      [{ reconciler: { use: {} } }, 'reconciler.use must be what createReconciler returned'],
      [{ relay: {} }, 'relay needs targets'],
      [{ sweeper: { everyMs: Infinity } }, 'sweeper.everyMs must be a number above 0 and at most 2147483647 ms'],
      [{ reaper: { keepDeliveredMs: 1e18 } }, 'reaper.keepDeliveredMs must be a number above 0'],
      [{ hint: true }, 'hint must be a function (got true)'],
    ],
  ],
  [
    'createRelay',
    options => createRelay({ outbox: sqlite.store.outbox, targets: {}, ...options } as Given),
    { batch: 10, aggregate: 'skip' },
    [
      [{ attemptMax: 1 }, 'unknown option attemptMax: did you mean attemptsMax?'],
      [{ aggregate: 'stop' }, "aggregate must be 'block' or 'skip' (got 'stop')"],
      [{ batch: 5_000 }, 'batch must be a whole number from 1 to 1000 (got 5000)'],
      [{ timeoutMs: Infinity }, 'timeoutMs must be a number above 0'],
    ],
  ],
  [
    'httpTarget',
    options => httpTarget({ url: 'http://127.0.0.1/', ...options } as Given),
    { headers: { authorization: 'Bearer x' }, timeoutMs: 100 },
    [
      [{ header: {} }, 'unknown option header: did you mean headers?'],
      [{ headers: { authorization: 5 } }, 'headers.authorization must be a text (got a number)'],
      [{ secret: 5 }, 'secret must be a text, or a list (got a number)'],
      [{ timeoutMs: 2 ** 31 }, 'timeoutMs must be a number above 0'],
    ],
  ],
  [
    'functionTarget',
    options => functionTarget(() => undefined, options as Given),
    { name: 'mail' },
    [
      [{ nam: 'x' }, 'unknown option nam: did you mean name?'],
      [{ name: 5 }, 'name must be a text (got 5)'],
    ],
  ],
  [
    'register: orders.create',
    options => {
      const host = latchkey()
      const operation = host.guarded('orders.create', { onFailure: 'hold' })
      return createReconciler(host).register(operation, { lookup, ...options } as Given)
    },
    { backoffMs: [1_000], timeoutMs: 5_000 },
    [
      [{ quarantine: 1 }, 'unknown option quarantine: did you mean quarantineMs?'],
      [{ lookup: 'ask' }, "lookup must be a function (got 'ask')"],
      [{ backoffMs: [1, Infinity] }, 'backoffMs[1] must be a number above 0'],
    ],
  ],
  [
    'webhook',
    options =>
      createReconciler(latchkey()).webhook({ name: 'x', verify: lookup, evidence: lookup, ...options } as Given),
    {},
    [
      [{ evidences: 1 }, 'unknown option evidences: did you mean evidence?'],
      [{ verify: 'stripe' }, "verify must be a function (got 'stripe')"],
    ],
  ],
  [
    'ledger books',
    options => createReconciler(latchkey()).ledger('books', { everyMs: 1_000, ...sides, ...options } as Given),
    { report: () => undefined },
    [
      [{ reports: 1 }, 'unknown option reports: did you mean report?'],
      [{ prove: true }, 'prove must be a function (got true)'],
      [{ everyMs: Infinity }, 'everyMs must be a number above 0'],
    ],
  ],
  ...([standardWebhooks, stripeWebhooks] as const).map((scheme): (typeof tables)[number] => [
    scheme.name,
    options => scheme({ secrets, ...options } as Given),
    { toleranceMs: 1_000 },
    [
      [{ secret: 'x' }, 'unknown option secret: did you mean secrets?'],
      [{ secrets: 'whsec_x' }, 'secrets must be a list (got a string)'],
      [{ toleranceMs: 1e18 }, 'toleranceMs must be a number above 0'],
    ],
  ]),
  [
    'memoryStore',
    options => memoryStore(options as Given),
    {},
    [
      [{ clok: clock }, 'unknown option clok: did you mean clock?'],
      [{ clock }, 'clock must be a clock with nowMs, monotonicMs, after (got an object)'],
      [{ transactionMs: 0 }, 'transactionMs must be'],
      [{ waitMs: -1 }, 'waitMs must be'],
    ],
  ],
  [
    'sqliteStore',
    options =>
      sqliteStore({ path: join(folder, 'keys.db'), open: (path: string) => new Database(path), ...options } as Given),
    { waitMs: 1_000 },
    [
      [{ waitMS: 1 }, 'unknown option waitMS: did you mean waitMs?'],
      [{ path: 5 }, 'path must be a text (got 5)'],
      [{ open: 'libsql' }, "open must be a function (got 'libsql')"],
      [{ transactionMs: Infinity }, 'transactionMs must be a number above 0'],
      [{ waitersMax: 1.5 }, 'waitersMax must be a whole number from 1'],
    ],
  ],
  [
    'postgresStore',
    options => postgresStore({ pool: { connect: lookup, query: lookup, on: lookup }, ...options } as Given),
    {},
    [
      [{ shema: 'x' }, 'unknown option shema: did you mean schema?'],
      [{ pool: 'postgres://' }, "pool must be a pool of pg with connect, query (got 'postgres://')"],
      [{ batching: 'on' }, "batching must be true or false, or an object of options (got 'on')"],
      [{ batching: { maxSize: 1 } }, 'unknown option batching.maxSize'],
      [{ batching: { timeoutMs: Infinity } }, 'batching.timeoutMs must be a number above 0'],
    ],
  ],
  ...[captureOnExpress, captureOnKoa].map((captureBody): (typeof tables)[number] => [
    'captureBody',
    options => captureBody(options as Given),
    { bodyBytesMax: 10 },
    [
      [{ limitBytes: 10 }, 'unknown option limitBytes. There are bodyBytesMax'],
      [{ bodyBytesMax: '1mb' }, "bodyBytesMax must be a whole number from 1 to 2147483647 (got '1mb')"],
      [{ bodyBytesMax: Infinity }, 'bodyBytesMax must be a whole number'],
    ],
  ]),
  [
    'statusOf',
    options => statusOf(latchkey(), options as Given),
    { id: () => 'x' },
    [
      [{ ids: 1 }, 'unknown option ids: did you mean id?'],
      [{ id: 'x' }, "id must be a function (got 'x')"],
    ],
  ],
  ...[onHono, onFetch].map((idempotent): (typeof tables)[number] => [
    'orders.create',
    options => Reflect.apply(idempotent, undefined, [guarded(), () => new Response(), options]),
    { onError: () => new Response() },
    [
      [{ onErrors: 1 }, 'unknown option onErrors: did you mean onError?'],
      [{ onError: true }, 'onError must be a function (got true)'],
    ],
  ]),
  [
    'LatchkeyModule.forRoot',
    options => LatchkeyModule.forRoot({ latchkey: latchkey(), ...options } as Given),
    { drainMs: 1_000 },
    [
      [{ drainMS: 1 }, 'unknown option drainMS: did you mean drainMs?'],
      [{ latchkey: {} }, 'latchkey must be what createLatchkey returned, with close (got an object)'],
      [{ drainMs: Infinity }, 'drainMs must be a number above 0'],
    ],
  ],
]

describe.each(tables)('%s', (owner, take, right, refusals) => {
  it('takes what is right', () => {
    expect(() => take(right)).not.toThrow()
  })

  it.each(refusals)('refuses %j', (given, message) => {
    expect(() => take(given)).toThrow(
      expect.objectContaining({ code: 'misconfigured', message: expect.stringContaining(`${owner}: ${message}`) }),
    )
  })
})

describe('what is given with a call', () => {
  const misconfigured = (message: string) =>
    expect.objectContaining({ code: 'misconfigured', message: expect.stringContaining(message) })

  it.each([
    [{ timeoutMS: 1 }, 'unknown option timeoutMS: did you mean timeoutMs?'],
    [{ timeoutMs: 1_000, dedup: 5 }, 'dedup must be an object of options (got 5)'],
    [{ timeoutMs: 1_000, dedup: { windowMS: 1 } }, 'unknown option dedup.windowMS: did you mean dedup.windowMs?'],
    [{ timeoutMs: 1_000, dedup: {} }, 'dedup needs windowMs'],
    [{ timeoutMs: 1_000, dedup: { windowMs: 1e18 } }, 'dedup.windowMs must be a number above 0'],
    [{ timeoutMs: 2 ** 31 }, 'timeoutMs must be a number above 0 and at most 2147483647 ms'],
    [{}, 'needs timeoutMs'],
  ])('refuses an effect with %j', async (options, message) => {
    const pay = onSqlite().phased('orders.pay', { version: 1 }, async x => {
      await x.effect('charge', options as Given, async () => 1)
      return json(200, 1)
    })
    const key = crypto.randomUUID()
    await expect(pay.run({ scope: 'acme', key, input: 1 })).rejects.toThrow(misconfigured(message))
  })

  it.each([
    [{ topik: 'mail', payload: 1 }, 'unknown option topik: did you mean topic?'],
    [{ topic: 5, payload: 1 }, 'topic must be a text (got 5)'],
    [{ topic: 'mail', payload: 1, headers: { a: 1 } }, 'headers.a must be a text (got 1)'],
    [{ payload: 1 }, 'needs a topic'],
  ])('refuses the message %j', async (message, told) => {
    const host = onSqlite()
    const send = host.atomic('orders.send')
    const key = crypto.randomUUID()
    const sent = send.run({ scope: 'acme', key, input: 1 }, ({ tx }) => host.outbox.append(tx, message as Given))
    await expect(sent).rejects.toThrow(misconfigured(told))
  })

  it('refuses a run with a name that it does not have, and a tx where nothing would be written in it', async () => {
    const request = { scope: 'acme', key: 'k', input: 1 }
    await expect(guarded().run({ ...request, keys: 1 } as never, () => 1)).rejects.toThrow(
      misconfigured('orders.create: run: unknown option keys: did you mean key?'),
    )
    await expect(guarded().run({ ...request, tx: {} } as never, () => 1)).rejects.toThrow(
      misconfigured('orders.create: run: unknown option tx'),
    )
  })
})
