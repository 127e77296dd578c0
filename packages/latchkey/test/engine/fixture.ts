/** What the engine's tests share: short settings, requests, a store that can be made to fail, and polling. */
import { setTimeout as pause } from 'node:timers/promises'
import { fingerprintInput } from '../../src/engine/fingerprint/fingerprint.ts'
import { identify, singleTenant } from '../../src/engine/request.ts'
import { createLatchkey, type Latchkey, type LatchkeyOptions } from '../../src/engine/latchkey.ts'
import type { Answer, Attempt, ExecuteRequest } from '../../src/engine/answer.ts'
import type { KeyRecord, Store } from '../../src/ports/store.ts'
import type { Telemetry } from '../../src/ports/telemetry.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'

export const operationName = 'payments.create'
export const act = { by: 'on-call', reason: 'the provider shows it' } as const

/** Times a test can wait for. */
export const brief = { leaseMs: 600, holdMsMax: 60_000, retentionMs: 70_000, allowShortRetention: true } as const

export function runRequest(
  key: string,
  input: unknown = { amount: 1 },
): { scope: string; key: string; input: unknown } {
  return { scope: 'acme', key, input }
}

export function idOf(key: string, operation: string = operationName): string {
  return identify({ scope: 'acme', operation, key }).id
}

export function executeRequest(key: string, over: Partial<ExecuteRequest> = {}): ExecuteRequest {
  const identity = identify({ scope: 'acme', operation: operationName, key })
  return { identity, key, fingerprint: fingerprintInput({ amount: 1 }), description: undefined, ...over }
}

export function answered(status: number, body = `answer ${status}`, error?: unknown): Attempt {
  const outcome = { status, headers: [['content-type', 'text/plain']] as const, body: Buffer.from(body), version: 0 }
  return { kind: 'answered', outcome, ...(error === undefined ? {} : { error }) }
}

/** In one line what a test wants to know of an answer. */
export function told(answer: Answer): string {
  switch (answer.kind) {
    case 'executed':
      return answer.attempt.kind === 'answered'
        ? `executed ${answer.attempt.outcome.status} ${answer.stored}`
        : `${answer.attempt.kind} ${answer.stored}`
    case 'replayed':
      return `replayed ${answer.outcome.status}`
    case 'accepted':
      return 'accepted'
    case 'refused':
      return `refused ${answer.refusal.code}`
  }
}

export type Fault = <T>(real: () => Promise<T>) => Promise<T>
export type Method = 'claim' | 'read' | 'heartbeat' | 'complete' | 'fail' | 'releaseMany' | 'sweep'

export interface FaultyStore {
  readonly store: Store
  readonly inner: Store
  /** What happens at the next calls of a method, one fault each; afterwards the real thing. A single fault stays for good. */
  break(method: Method, fault: Fault | Fault[]): void
  mend(): void
  readonly calls: Record<Method, number>
}

export const never: Fault = () => new Promise(() => {})
export const rejects: Fault = () => Promise.reject(new Error('connection terminated'))
/** Applied, and the reply lost with the connection. */
export const losesReply: Fault = async real => {
  await real()
  throw new Error('connection terminated')
}
/** Applied, and no reply ever. */
export const hangsAfter: Fault = async real => {
  await real()
  return await new Promise(() => {})
}
export const delayed =
  (delayMs: number): Fault =>
  async real => {
    await pause(delayMs)
    return real()
  }

export function faultyStore(inner: Store = memoryStore()): FaultyStore {
  const faults = new Map<Method, Fault | Fault[]>()
  const calls: Record<Method, number> = {
    ...{ claim: 0, read: 0, heartbeat: 0, complete: 0, fail: 0, releaseMany: 0, sweep: 0 },
  }

  function through<T>(method: Method, real: () => Promise<T>): Promise<T> {
    calls[method] += 1
    const fault = faults.get(method)
    const next = Array.isArray(fault) ? fault.shift() : fault
    return next === undefined ? real() : next(real)
  }

  const store: Store = {
    ...inner,
    claim: request => through('claim', () => inner.claim(request)),
    read: id => through('read', () => inner.read(id)),
    heartbeat: (claim, leaseMs) => through('heartbeat', () => inner.heartbeat(claim, leaseMs)),
    complete: (claim, outcome, retentionMs) => through('complete', () => inner.complete(claim, outcome, retentionMs)),
    fail: (claim, failure) => through('fail', () => inner.fail(claim, failure)),
    releaseMany: claims => through('releaseMany', () => inner.releaseMany(claims)),
    sweep: options => through('sweep', () => inner.sweep(options)),
  }
  return { store, inner, calls, break: (method, fault) => void faults.set(method, fault), mend: () => faults.clear() }
}

export type TestLatchkey = Latchkey<unknown, unknown>

/** One Latchkey on a store of its own, closed by the test's end. */
export function latchkeyOn(store: Store, options: Partial<LatchkeyOptions<unknown, unknown>> = {}): TestLatchkey {
  return createLatchkey({ store, scope: singleTenant, maintenance: false, ...options })
}

/** Everything telemetry was told, for counting and for searching. */
export function recordingTelemetry(): Telemetry & { readonly told: unknown[]; counted(metric: string): number } {
  const all: unknown[] = []
  const counts: string[] = []
  return {
    told: all,
    counted: metric => counts.filter(name => name === metric).length,
    count(metric, attributes) {
      counts.push(metric)
      all.push([metric, attributes])
    },
    observe: (metric, value, attributes) => void all.push([metric, value, attributes]),
    report: (message, attributes) => void all.push([message, attributes]),
  }
}

/** Asks again until the answer is yes: the machine may be slow, so the limit is far away. */
export async function eventually(condition: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
  const until = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > until) throw new Error(`not within ${limitMs} ms: ${condition}`)
    await pause(10)
  }
}

/** Asks until the answer is the wanted one; the last answer, for the test to compare. */
export async function lastAnswer<T>(ask: () => Promise<T>, wanted: T): Promise<T> {
  const until = performance.now() + 30_000
  for (;;) {
    const answer = await ask()
    if (answer === wanted || performance.now() > until) return answer
    await pause(10)
  }
}

export async function rowOf(store: Store, key: string): Promise<KeyRecord> {
  const record = await store.read(idOf(key))
  if (record === undefined) throw new Error(`no row for ${key}`)
  return record
}

/** A promise and its resolver, to hold a handler until the test lets it go. */
export function gate(): { readonly opened: Promise<void>; open: () => void } {
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { opened, open: () => open() }
}
