/** A served app with one Latchkey, and the helpers that cases share. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type AtomicExecution,
  createLatchkey,
  type Execution,
  type Header,
  type HttpOptions,
  type Latchkey,
  type Store,
  type Telemetry,
} from 'latchkey'
import { type Received, send, type SentRequest, type Sending } from './client.ts'
import type {
  AdapterHarness,
  PhasedRouteSpec,
  HandlerReply,
  RouteSpec,
  RunningApp,
  HandlerInput,
} from '../adapter-harness.ts'

export interface AppOptions {
  readonly store?: Store
  readonly http?: HttpOptions
  readonly telemetry?: Telemetry
  readonly outerHeaders?: readonly Header[]
  readonly phased?: (latchkey: Latchkey<unknown, unknown>) => readonly PhasedRouteSpec[]
  /** The path of the status resource. Absent: there is none. */
  readonly statusPath?: string
}

export interface AppFixture {
  readonly store: Store
  readonly latchkey: Latchkey<unknown, unknown>
  /** Sends and waits for the whole response. */
  post(path: string, sent?: SentRequest): Promise<Received>
  /** Sends; the caller handles the response and the connection. */
  open(path: string, sent?: SentRequest): Sending
  id(operation: string, key: string, tenant?: string): string
}

type Routes = (latchkey: Latchkey<unknown, unknown>) => readonly RouteSpec[]

/** Serves the routes, runs the case, and stops everything in every case. */
export async function withApp(
  harness: AdapterHarness,
  routes: Routes,
  run: (fixture: AppFixture) => Promise<void>,
  options: AppOptions = {},
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
    await run(fixtureOf(app, latchkey, store))
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

/** Tenants that a header cannot carry, each under a name that it can. */
export const oddTenants: ReadonlyMap<string, string> = new Map([
  ['half of a pair', '\ud800'],
  ['another half', '\ud801'],
  ['nothing', 'a\0b'],
  ['without end', 'x'.repeat(1_025)],
])

function fixtureOf(app: RunningApp, latchkey: Latchkey<unknown, unknown>, store: Store): AppFixture {
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
  readonly inputs: HandlerInput[]
}

export function counted(): Counted {
  return { runs: 0, inputs: [] }
}

export interface RouteOptions {
  readonly method?: RouteSpec['method']
  readonly path?: string
  readonly count?: Counted
}

export function route(
  operation: RouteSpec['operation'],
  reply: HandlerReply | ((input: HandlerInput, run: number) => HandlerReply | Promise<HandlerReply>),
  { method = 'POST', path = '/orders', count = counted() }: RouteOptions = {},
): RouteSpec {
  return {
    method,
    path,
    operation,
    async run(input) {
      count.runs += 1
      count.inputs.push(input)
      return typeof reply === 'function' ? reply(input, count.runs) : reply
    },
  }
}

export function answer(status: number, body: string | Uint8Array = '', headers: readonly Header[] = []): HandlerReply {
  return { kind: 'answer', status, headers, body: typeof body === 'string' ? Buffer.from(body) : body }
}

/** A 201 with a different body for each run. */
export function created(run: number): HandlerReply {
  return answer(201, JSON.stringify({ order: run }), [['Content-Type', 'application/json']])
}

export function txOf(execution: Execution | undefined): unknown {
  assert.ok(execution !== undefined && 'tx' in execution, 'the handler of an atomic operation gets a tx')
  // The check above covers the only member that the type adds.
  return (execution as AtomicExecution<unknown>).tx
}

/** A gate at which a handler waits until the case opens it; `reached` resolves when a handler arrives. */
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

/** Polls until the condition holds; for what happens soon, at no moment that the case can name. */
export async function eventually(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const triesMax = 400
  for (let tries = 0; tries < triesMax; tries++) {
    if (await holds()) return
    await pause(25)
  }
  assert.fail(`never happened: ${what}`)
}

export function assertReplay(first: Received, again: Received): void {
  assert.equal(first.header('Idempotent-Replayed'), undefined, 'the first response is not a replay')
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
    'every response of Latchkey says whether a retry helps',
  )
}

/** Bytes that text handling would damage and that do not compress; the same in every run. */
export function noise(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  let state = 0x9e3779b9
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[at] = state >>> 24
  }
  return bytes
}
