/** A served app with one Latchkey behind it, and the props that cases share. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { AtomicExecution, Execution } from '../../engine/execution.ts'
import { createLatchkey, type Latchkey } from '../../engine/latchkey.ts'
import type { HttpOptions } from '../../engine/operation.ts'
import type { Header } from '../../ports/outcome.ts'
import type { Store } from '../../ports/store.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import { type Received, send, type SentRequest, type Sending } from './client.ts'
import type { AdapterHarness, PhasedRouteSpec, Reply, RouteSpec, RunningApp, Visit } from '../adapter-harness.ts'

export interface StageOptions {
  readonly store?: Store
  readonly http?: HttpOptions
  readonly telemetry?: Telemetry
  readonly outerHeaders?: readonly Header[]
  readonly phased?: (latchkey: Latchkey<unknown, unknown>) => readonly PhasedRouteSpec[]
  /** Where the status resource is. Absent: nowhere. */
  readonly statusPath?: string
}

export interface Stage {
  readonly store: Store
  readonly latchkey: Latchkey<unknown, unknown>
  /** Sends and waits for the whole answer. */
  post(path: string, sent?: SentRequest): Promise<Received>
  /** Sends; the answer and the connection are the caller's. */
  open(path: string, sent?: SentRequest): Sending
  id(operation: string, key: string, tenant?: string): string
}

type Routes = (latchkey: Latchkey<unknown, unknown>) => readonly RouteSpec[]

/** Serves the routes, runs the case, and stops everything, whatever the case did. */
export async function onStage(
  harness: AdapterHarness,
  routes: Routes,
  play: (stage: Stage) => Promise<void>,
  options: StageOptions = {},
): Promise<void> {
  const store = options.store ?? harness.memoryStore()
  const { http, telemetry } = options
  const latchkey = createLatchkey<unknown, unknown>({
    store,
    scope: context => tenantOf(harness, context),
    ...(http === undefined ? {} : { http }),
    ...(telemetry === undefined ? {} : { telemetry }),
  })
  const { outerHeaders = [], phased = () => [], statusPath } = options
  const app = await harness.start({
    routes: routes(latchkey),
    phased: phased(latchkey),
    outerHeaders,
    ...(statusPath === undefined ? {} : { status: { path: statusPath, latchkey } }),
  })
  try {
    await play(stageOf(app, latchkey, store))
  } finally {
    await app.close()
    await latchkey.close({ timeoutMs: 5_000 })
  }
}

function tenantOf(harness: AdapterHarness, context: unknown): readonly string[] {
  const tenant = harness.headerOf(context, 'x-tenant')
  if (tenant === 'unresolvable') throw new Error('no such tenant')
  return [oddTenants.get(tenant ?? '') ?? tenant ?? '']
}

/** Tenants that a header cannot carry, by a name that it can. */
export const oddTenants: ReadonlyMap<string, string> = new Map([
  ['half of a pair', '\ud800'],
  ['another half', '\ud801'],
  ['nothing', 'a\0b'],
  ['without end', 'x'.repeat(1_025)],
])

function stageOf(app: RunningApp, latchkey: Latchkey<unknown, unknown>, store: Store): Stage {
  const open = (path: string, sent: SentRequest = {}) => send(app.url + path, sent)
  return {
    store,
    latchkey,
    open,
    post: (path, sent) => open(path, sent).received,
    id: (operation, key, tenant = 'acme') => latchkey.identify({ scope: [tenant], operation, key }),
  }
}

/** A handler that counts its runs. */
export interface Counted {
  runs: number
  readonly visits: Visit[]
}

export function counted(): Counted {
  return { runs: 0, visits: [] }
}

export interface RouteOptions {
  readonly method?: RouteSpec['method']
  readonly path?: string
  readonly count?: Counted
}

export function route(
  operation: RouteSpec['operation'],
  reply: Reply | ((visit: Visit, run: number) => Reply | Promise<Reply>),
  { method = 'POST', path = '/orders', count = counted() }: RouteOptions = {},
): RouteSpec {
  return {
    method,
    path,
    operation,
    async run(visit) {
      count.runs += 1
      count.visits.push(visit)
      return typeof reply === 'function' ? reply(visit, count.runs) : reply
    },
  }
}

export function answer(status: number, body: string | Uint8Array = '', headers: readonly Header[] = []): Reply {
  return { kind: 'answer', status, headers, body: typeof body === 'string' ? Buffer.from(body) : body }
}

/** A 201 with a body that tells runs apart. */
export function created(run: number): Reply {
  return answer(201, JSON.stringify({ order: run }), [['Content-Type', 'application/json']])
}

export function txOf(execution: Execution | undefined): unknown {
  assert.ok(execution !== undefined && 'tx' in execution, 'the handler of an atomic operation gets a tx')
  // The check above is the type's one addition.
  return (execution as AtomicExecution<unknown>).tx
}

/** A door that a handler waits at until the case opens it, and that tells when somebody stands there. */
export interface Gate {
  readonly reached: Promise<void>
  pass(): Promise<void>
  open(): void
}

export function gate(): Gate {
  let arrive = () => {}
  let open = () => {}
  const reached = new Promise<void>(resolve => (arrive = resolve))
  const opened = new Promise<void>(resolve => (open = resolve))
  return {
    reached,
    open: () => open(),
    pass() {
      arrive()
      return opened
    },
  }
}

/** Asks again until it holds; for what happens soon, and not at a moment the case can name. */
export async function eventually(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const triesMax = 400
  for (let tries = 0; tries < triesMax; tries++) {
    if (await holds()) return
    await pause(25)
  }
  assert.fail(`never happened: ${what}`)
}

export function assertReplay(first: Received, again: Received): void {
  assert.equal(first.header('Idempotent-Replayed'), undefined, 'the first answer is no replay')
  assert.equal(
    again.header('Idempotent-Replayed'),
    'true',
    `a replay says so; it was ${again.status} ${again.body.toString()}`,
  )
  assert.equal(again.status, first.status)
  assert.ok(first.body.equals(again.body), 'a replay has the same bytes')
}

export function assertProblem(received: Received, status: number, code: string): void {
  assert.equal(received.status, status, received.body.toString())
  assert.equal(received.header('Content-Type'), 'application/problem+json')
  assert.equal(received.json()['type'], `urn:latchkey:problem:${code}`)
  assert.ok(
    ['later', 'no'].includes(received.header('Latchkey-Retry') ?? ''),
    'every answer of ours says whether a retry helps',
  )
}

/** Bytes without a pattern that text handling or compression would survive; the same in every run. */
export function noise(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  let state = 0x9e3779b9
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[at] = state >>> 24
  }
  return bytes
}
