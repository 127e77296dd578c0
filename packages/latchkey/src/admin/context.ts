/** What all parts of the service share: who may, what is seen, and what is written down when it is refused. */
import { hash } from 'node:crypto'
import { type Clock, uuidOfHex } from '../ports/clock.ts'
import { type ErrorCode, LatchkeyError, misconfigured } from '../ports/errors.ts'
import type { AdminRecords, NewEntry, RowVersion } from '../ports/faculties/admin.ts'
import type { KeyRecord, Store } from '../ports/store.ts'
import { engine } from '../engine/internal.ts'
import type { Internals } from '../engine/latchkey.ts'
import { isRowId, scopeText } from '../engine/request.ts'
import { within } from '../engine/store/call.ts'
import type { Actor, AdminOptions, Asker } from './admin.ts'
import { noActs, withoutTables } from './core.ts'
import type { ReadRefusal, Refusal } from './results.ts'
import { checkPerson, type Right, rightsOf } from './rights.ts'

type Asked = 'telemetry' | 'retentionOf' | 'leaseMsOf' | 'onFailureOf' | 'kinds'

/** A Latchkey, as far as its operators need it. */
export interface AdminHost<Tx> {
  readonly [engine]: Pick<Internals<Tx>, 'store' | 'clock' | Asked>
}

export interface AdminContext {
  readonly store: Store<unknown>
  readonly clock: Clock
  readonly latchkey: Pick<Internals<never>, Asked>
  readonly options: AdminOptions
  /** Calls the store with a limit. Rejects with `store-unavailable`. */
  call<T>(run: () => Promise<T>): Promise<T>
}

/** A little longer than a query of an operator may take in the store. */
const callMsMax = 5_000
/** What was asked is wrong, whatever the store is like. */
const notOfTheStore: readonly ErrorCode[] = ['misconfigured', 'scope-unresolved', 'invalid-key']
/** Ten minutes, as a reconciler's default. */
const quarantineDefaultMs = 600_000
const actsPerMinuteDefault = 60

export function contextOf<Tx>(host: AdminHost<Tx>, options: AdminOptions): AdminContext {
  const latchkey = host?.[engine]
  if (typeof latchkey?.store?.claim !== 'function') {
    throw misconfigured('createAdmin needs a Latchkey: createAdmin({ latchkey })')
  }
  // A caller with a transaction goes through the transactor of the same store; no caller here has one.
  const store = latchkey.store as Store<unknown>
  const { clock } = latchkey
  return {
    ...{ store, clock, latchkey, options },
    async call(run) {
      try {
        return await within(clock, callMsMax, run)
      } catch (cause) {
        if (cause instanceof LatchkeyError && notOfTheStore.includes(cause.code)) throw cause
        throw new LatchkeyError('store-unavailable', `the ${store.name} store failed: ${String(cause)}`, { cause })
      }
    },
  }
}

export function isRefusal<T>(value: T | ReadRefusal): value is ReadRefusal {
  const kinds: readonly unknown[] = ['not-permitted', 'not-found', 'not-supported', 'invalid']
  return typeof value === 'object' && value !== null && 'kind' in value && kinds.includes(value.kind)
}

/** The operators' tables of the store, if this person may. */
export function permitted({ store }: AdminContext, { who }: Asker, right: Right): AdminRecords | ReadRefusal {
  if (!rightsOf(checkPerson(who)).includes(right)) return { kind: 'not-permitted', right }
  if (store.admin !== undefined) return store.admin
  const shown = 'its rows are found and shown all the same, and the unknown and the parked ones are listed'
  const why = right === 'view' ? `${withoutTables(store.name)}: ${shown}` : noActs(store.name)
  return { kind: 'not-supported', why }
}

/** For what every store can show. Undefined: this person may see it. */
export function notViewable({ who }: Asker): ReadRefusal | undefined {
  return rightsOf(checkPerson(who)).includes('view') ? undefined : { kind: 'not-permitted', right: 'view' }
}

/** Undefined: every scope. */
export function scopesOf({ who: { limitScopes } }: Asker): readonly string[] | undefined {
  return limitScopes?.map(scopeText)
}

export function sees(by: Asker, scope: string): boolean {
  return scopesOf(by)?.includes(scope) ?? true
}

/** The row, if there is one that this person may see. */
export async function visibleRow(context: AdminContext, by: Asker, id: string): Promise<KeyRecord | undefined> {
  if (!isRowId(id)) return undefined
  const record = await context.call(() => context.store.read(id))
  return record !== undefined && sees(by, record.scope) ? record : undefined
}

export function versionText({ fence, version }: RowVersion): string {
  return `${fence}.${version}`
}

export function parsedVersion(text: unknown): RowVersion | undefined {
  const [, fence, version] = /^(\d{1,16})\.(\d{1,16})$/.exec(String(text)) ?? []
  return fence === undefined ? undefined : { fence: Number(fence), version: Number(version) }
}

/** What no right, row or second person could make valid. */
export function reasonFault(reason: unknown): string | undefined {
  if (typeof reason === 'string' && reason.trim() !== '' && reason.length <= reasonLengthMax) return undefined
  return `a reason of 1 to ${reasonLengthMax} characters is required: it is stored for good`
}

const reasonLengthMax = 1_000
/** Of a text that stands where an id should: enough to see what it was. */
const notAnIdMax = 100

export function requestIdOf({ clock }: AdminContext, { requestId }: Actor): string {
  return requestId ?? clock.randomId()
}

export interface Attempt extends Pick<NewEntry, 'act' | 'id' | 'scope' | 'reason' | 'requestId' | 'evidence'> {
  readonly by: Actor
}

/** An attempt that was refused is written down; a store that cannot is no reason to answer otherwise. */
export async function refuse<R extends Refusal>(context: AdminContext, attempt: Attempt, refusal: R): Promise<R> {
  const { by, act, id, scope, requestId, evidence } = attempt
  const { admin } = context.store
  const reason = reasonFault(attempt.reason) === undefined ? attempt.reason : 'none given'
  // What is no id of a row has no column to stand in.
  const isRow = id !== undefined && isRowId(id)
  const detail = refusal.kind === 'not-permitted' ? refusal.right : isRow ? '' : (id ?? '').slice(0, notAnIdMax)
  const entry = {
    act,
    id: isRow ? id : undefined,
    scope,
    requestId,
    evidence,
    reason,
    detail,
    by: by.who.name,
    source: by.source,
    refused: refusal.kind,
  }
  await context
    .call(async () => admin?.addEntry(entry))
    .catch((error: unknown) => {
      context.latchkey.telemetry.report('a refused attempt of an operator could not be written to the audit', { error })
    })
  return refusal
}

/** A person has so many acts in a minute, over the whole fleet. Undefined: this one is among them. */
export async function overLimit(
  { store, options, call }: AdminContext,
  { who }: Actor,
): Promise<Extract<Refusal, { kind: 'too-many-acts' }> | undefined> {
  const perMinute = options.actsPerMinute ?? actsPerMinuteDefault
  const bucket = uuidOfHex(hash('sha256', JSON.stringify(['latchkey.admin.v1', who.name]), 'hex'))
  const leased = await call(async () => store.quotas?.lease({ bucket, perMinute, tokens: 1 }))
  if (leased === undefined || leased.granted === 1) return undefined
  return { kind: 'too-many-acts', retryAfterMs: Math.max(1, leased.nextInMs) }
}

/** How long "did not happen" is refused: the option, what the fleet's reconcilers report, or the default. */
export async function quarantines(context: AdminContext): Promise<(operation: string) => number> {
  const reported = new Map<string, number>()
  for (const { loop, detail } of (await context.call(async () => context.store.admin?.workers())) ?? []) {
    if (loop !== 'reconciler' || detail === undefined) continue
    for (const [operation, ms] of Object.entries(reportedBy(detail)))
      reported.set(operation, Math.max(ms, reported.get(operation) ?? 0))
  }
  return operation => context.options.quarantineMs?.(operation) ?? reported.get(operation) ?? quarantineDefaultMs
}

function reportedBy(detail: string): Readonly<Record<string, number>> {
  try {
    // Written by the beats of workers; a later release may write something else.
    const { quarantineMs } = JSON.parse(detail) as { readonly quarantineMs?: Readonly<Record<string, unknown>> }
    const known = Object.entries(quarantineMs ?? {}).filter(([, ms]) => typeof ms === 'number')
    return Object.fromEntries(known) as Record<string, number>
  } catch {
    return {}
  }
}
