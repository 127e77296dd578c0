/** Work for later: 202, a status resource that only its own caller can see, and the outcome at the end. */
import assert from 'node:assert/strict'
import { type Definition, json, type Latchkey } from 'latchkey'
import { createWorkers } from 'latchkey/workers'
import type {
  AdapterCase,
  AdapterHarness,
  AdapterNeed,
  PhasedRouteSpec,
  TransactionalHarness,
} from '../adapter-harness.ts'
import type { Received } from './client.ts'
import { tooLarge } from './phased.ts'
import {
  assertProblem,
  assertReplay,
  type Counted,
  counted,
  eventually,
  gate,
  oddTenants,
  withApp,
  type AppFixture,
} from './fixture.ts'

interface Deferred {
  readonly fixture: AppFixture
  readonly database: TransactionalHarness
  readonly count: Counted
  /** Does what a worker does: everything that is due, once. */
  work(): Promise<void>
  /** The status of the work under this key. */
  look(key: string, headers?: Readonly<Record<string, string>>): Promise<Received>
}

interface DeferredSpec {
  readonly deadlineMs?: number
  /** Runs between the two steps. */
  readonly between?: (run: number) => unknown
  readonly run: (deferred: Deferred) => Promise<void>
}

const needs: readonly AdapterNeed[] = ['transactional', 'phased', 'deferred']
const path = '/exports'
const operation = 'exports.create'
const body = { rows: 2 }
const hour = 3_600_000

/** A deferred export, a payment that may be deferred, one that may not, and the status resource. */
async function onDeferredStage(harness: AdapterHarness, spec: DeferredSpec): Promise<void> {
  const database = await harness.transactional?.()
  assert.ok(database !== undefined, 'the harness provides a transactional store')
  const count = counted()
  const { between = () => undefined, deadlineMs = hour, run } = spec
  const build: Definition<unknown, unknown> = async (x, input) => {
    const run = ++count.runs
    await x.phase('collect', tx => database.insert(tx, `collected in run ${run}`))
    await between(run)
    await x.phase('write', tx => database.insert(tx, `written in run ${run}`))
    return json(201, { input, id: x.id }, [['Location', '/files/1']])
  }
  const phased = (latchkey: Latchkey<unknown, unknown>): PhasedRouteSpec[] => {
    const respondAsync = { deadlineMs }
    const input = (given: unknown) => given
    return [
      { method: 'POST', path, input, operation: latchkey.deferred(operation, { deadlineMs }, build) },
      {
        method: 'POST',
        path: '/payments',
        input,
        operation: latchkey.phased('payments.create', { version: 1, respondAsync }, build),
      },
      { method: 'POST', path: '/orders', input, operation: latchkey.phased('orders.create', { version: 1 }, build) },
    ]
  }
  const tools = (fixture: AppFixture): Deferred => ({
    fixture,
    database,
    count,
    work: () => workOnce(fixture),
    look: (key, headers = {}) => lookAt(fixture, `/operations/${fixture.id(operation, key)}`, headers),
  })
  const options = { store: database.store, phased, statusPath: '/operations/:id', outerHeaders }
  try {
    await withApp(
      harness,
      () => [],
      fixture => run(tools(fixture)),
      options,
    )
  } finally {
    await database.close()
  }
}

const outerHeaders = [['X-Outer', 'always']] as const

/** A worker that finds what is waiting, finishes it, and goes: what fails rests, so it runs once. */
async function workOnce({ latchkey }: AppFixture): Promise<void> {
  const workers = createWorkers(latchkey, { only: ['resumer'], resumer: { everyMs: 1 } })
  workers.start()
  await eventually('the worker has looked for work', () => (workers.health().resumer?.turns ?? 0) > 0)
  assert.deepEqual(await workers.drain(), { drained: true })
}

function lookAt(fixture: AppFixture, at: string, headers: Readonly<Record<string, string>> = {}): Promise<Received> {
  return fixture.post(at, { method: 'GET', headers })
}

function assertAccepted(received: Received, id: string): void {
  assert.equal(received.status, 202, received.body.toString())
  assert.deepEqual(received.json(), { id, state: 'pending', status_url: `/operations/${id}` })
  assert.deepEqual(
    ['Location', 'Content-Type', 'Latchkey-Retry', 'Cache-Control', 'X-Outer'].map(name => received.header(name)),
    [`/operations/${id}`, 'application/json', 'later', 'no-store', 'always'],
  )
  assert.ok(Number(received.header('Retry-After')) >= 1, 'a 202 says when to ask for the status')
}

/** All of a response except its time. */
function traces(received: Received): unknown {
  const timeless = received.rawHeaders.filter((_, at, all) => all[at - (at % 2)]?.toLowerCase() !== 'date')
  return { status: received.status, headers: timeless, body: received.body.toString() }
}

export const deferredCases: readonly AdapterCase[] = [
  ...tooLarge.map(([what, large, limit]): AdapterCase => ({
    name: `refuses deferred work whose input ${what} with 413 and the limit, and stores nothing of it`,
    needs,
    run: harness =>
      onDeferredStage(harness, {
        async run({ fixture }) {
          for (const [at, headers] of [[path, {}] as const, ['/payments', { Prefer: 'respond-async' }] as const]) {
            const sent = { key: 'k', body: large, headers: { 'Content-Type': 'application/json', ...headers } }
            const refused = await fixture.post(at, sent)
            assertProblem(refused, 413, 'body-too-large')
            assert.deepEqual({ ...refused.json(), ...limit }, refused.json())
          }
          assert.deepEqual((await fixture.store.list({ limit: 10 })).records, [])
        },
      }),
  })),
  {
    name: 'accepts deferred work, shows its steps move and its outcome, and answers a retry with the outcome then',
    needs,
    run(harness) {
      const door = gate()
      return onDeferredStage(harness, {
        between: () => door.pass(),
        async run({ fixture, database, work, look }) {
          const id = fixture.id(operation, 'k')
          const accepted = await fixture.post(path, { key: 'k', body })
          assertAccepted(accepted, id)
          assert.equal(accepted.header('Preference-Applied'), undefined, 'the request had no preference')
          assert.equal((await fixture.store.read(id))?.state, 'pending', 'a request runs nothing of it')
          const before = await look('k')
          assert.equal(before.status, 200, before.body.toString())
          const { created_at: createdAt, ...told } = before.json()
          assert.deepEqual(told, { id, operation, state: 'pending', step: null, attempts: 0, parked: false })
          assert.equal(new Date(String(createdAt)).toISOString(), createdAt)
          assert.ok(Number(before.header('Retry-After')) >= 1)
          assert.deepEqual(
            ['Cache-Control', 'Content-Type', 'X-Outer'].map(name => before.header(name)),
            ['no-store', 'application/json', 'always'],
          )
          const working = work()
          await door.reached
          const during = (await look('k')).json()
          assert.deepEqual([during['state'], during['step'], during['attempts']], ['in_progress', 'collect', 1])
          door.open()
          await working
          const after = await look('k')
          assert.equal(after.header('Retry-After'), undefined, 'there is nothing to wait for')
          const { state, step, outcome } = after.json()
          assert.deepEqual([state, step], ['completed', 'write'])
          assert.deepEqual(outcome, {
            status: 201,
            headers: { 'content-type': 'application/json', location: '/files/1' },
            body: { input: body, id },
          })
          const retry = await fixture.post(path, { key: 'k', body })
          assert.deepEqual([retry.status, retry.header('Idempotent-Replayed')], [201, 'true'])
          assert.deepEqual(retry.json(), { input: body, id })
          assert.deepEqual(await database.values(), ['collected in run 1', 'written in run 1'])
        },
      })
    },
  },
  {
    name: 'answers every retry of deferred work with the same 202 until its end, and misuse of its key as always',
    needs,
    run(harness) {
      const door = gate()
      return onDeferredStage(harness, {
        between: run => (run === 1 ? Promise.reject(new Error('the disk is full')) : door.pass()),
        async run({ fixture, count, work }) {
          const id = fixture.id(operation, 'k')
          const states: unknown[] = []
          const first = await fixture.post(path, { key: 'k', body })
          const retry = async () => {
            states.push((await fixture.store.read(id))?.state)
            assert.deepEqual(traces(await fixture.post(path, { key: 'k', body })), traces(first))
            assertProblem(await fixture.post(path, { key: 'k', body: { rows: 3 } }), 422, 'key-reused')
          }
          assertAccepted(first, id)
          await retry()
          await work()
          await retry()
          const working = eventually('the second run ends', async () => {
            await work()
            return (await fixture.store.read(id))?.state === 'completed'
          })
          await door.reached
          await retry()
          door.open()
          await working
          assert.deepEqual(states, ['pending', 'failed_retryable', 'in_progress'])
          assert.equal((await fixture.post(path, { key: 'k', body })).status, 201)
          assertProblem(await fixture.post(path, { body }), 400, 'missing-key')
          assert.equal(count.runs, 2)
        },
      })
    },
  },
  {
    name: 'answers for the work of another tenant, for none and for nonsense with the same 404',
    needs,
    run: harness =>
      onDeferredStage(harness, {
        async run({ fixture, look, work }) {
          await fixture.post(path, { key: 'k', body })
          const strange = await look('k', { 'x-tenant': 'evil' })
          assertProblem(strange, 404, 'no-such-operation')
          assert.equal(strange.header('X-Outer'), 'always')
          const others = ['/operations/00000000-0000-4000-8000-000000000000', '/operations/nonsense', '/operations/1']
          for (const one of others) assert.deepEqual(traces(await lookAt(fixture, one)), traces(strange), one)
          await work()
          assert.deepEqual(traces(await look('k', { 'x-tenant': 'evil' })), traces(strange), 'when it has ended')
          assert.equal((await look('k')).status, 200)
          for (const tenant of ['unresolvable', ...oddTenants.keys()])
            assertProblem(await look('k', { 'x-tenant': tenant }), 500, 'scope-unresolved')
        },
      }),
  },
  {
    name: 'defers phased work for a client that prefers it, where the operation offers that',
    needs,
    run: harness =>
      onDeferredStage(harness, {
        async run({ fixture, count, work }) {
          const headers = { prefer: 'handling=lenient, Respond-Async;x=1' }
          const id = fixture.id('payments.create', 'later')
          const later = await fixture.post('/payments', { key: 'later', body, headers })
          assertAccepted(later, id)
          assert.equal(later.header('Preference-Applied'), 'respond-async')
          assert.equal(count.runs, 0)
          await work()
          const replay = await fixture.post('/payments', { key: 'later', body, headers })
          assert.deepEqual([replay.status, replay.header('Preference-Applied')], [201, undefined])
          const now = await fixture.post('/payments', { key: 'now', body, headers: { prefer: 'wait="respond-async"' } })
          assert.deepEqual([now.status, now.header('Preference-Applied')], [201, undefined])
          assertReplay(now, await fixture.post('/payments', { key: 'now', body }))
          const without = await fixture.post('/orders', { key: 'now', body, headers })
          assert.deepEqual([without.status, without.header('Preference-Applied')], [201, undefined])
          const told = await fixture.post(path, { key: 'k', body, headers })
          assert.deepEqual([told.status, told.header('Preference-Applied')], [202, 'respond-async'])
        },
      }),
  },
  {
    name: 'ends deferred work that nobody began in time in a stored 408, which its status and every retry tell',
    needs,
    run: harness =>
      onDeferredStage(harness, {
        deadlineMs: 1,
        async run({ fixture, count, look, work }) {
          assertAccepted(await fixture.post(path, { key: 'k', body }), fixture.id(operation, 'k'))
          await eventually('the deadline has passed', async () => {
            await work()
            return (await look('k')).json()['state'] === 'completed'
          })
          const { outcome } = (await look('k')).json() as { outcome: { status: number; body: { type: string } } }
          assert.deepEqual([outcome.status, outcome.body.type], [408, 'urn:latchkey:problem:deadline-passed'])
          const retry = await fixture.post(path, { key: 'k', body })
          assert.deepEqual([retry.status, retry.header('Idempotent-Replayed')], [408, 'true'])
          assert.equal(retry.header('Content-Type'), 'application/problem+json')
          assert.deepEqual(retry.json(), outcome.body)
          assert.equal(count.runs, 0)
        },
      }),
  },
]
