/** What a look-up, a webhook or a ledger reports about a row, and how it is checked. */
import { misconfigured } from '../ports/errors.ts'
import type { Header, Outcome } from '../ports/outcome.ts'
import type { FoundVerdict } from '../ports/reconciliation.ts'
import { boundedJson } from '../engine/steps/json.ts'

/** The effect happened, or was refused for good; `value` is what its call would have returned, and the remaining steps continue with it. */
export interface EffectFound {
  readonly kind: 'happened' | 'declined'
  readonly value: unknown
}

/** The operation happened, or was refused for good; clients get this answer from now on: `json(201, …)`. */
export interface OutcomeFound {
  readonly kind: 'happened' | 'declined'
  readonly outcome: Outcome
}

/** The provider has no record of it. Counts only when found after the quarantine; then the effect is tried again. */
export interface NeverHappened {
  readonly kind: 'never-happened'
}

/** The provider cannot tell yet: the look-up is repeated later. Return this whenever you are not sure. */
export interface StillUnknown {
  readonly kind: 'still-unknown'
}

/** About an effect of phased or deferred work. */
export type EffectVerdict = EffectFound | NeverHappened | StillUnknown
/** About guarded work, or phased work that threw `outcomeUnknown` outside an effect. */
export type OutcomeVerdict = OutcomeFound | NeverHappened | StillUnknown

/** Which row a piece of evidence is about, and its verdict. */
export type EvidenceInput = RowReference & { readonly verdict: EffectFound | OutcomeFound | NeverHappened }

/**
 * Names a row by the downstream key that was sent with the effect; with the row's id beside it, evidence about an abandoned key is found as well.
 * Or by the row's id (`x.id`, sent as metadata) alone: for guarded work, and for phased work with the effect's name unless it is the open one.
 * Prefer the key: an id does not distinguish one try of an effect from the next.
 */
export type RowReference =
  | { readonly downstreamKey: string; readonly id?: string }
  | { readonly id: string; readonly effect?: string; readonly downstreamKey?: never }

/** Checks a verdict that application code returned. Throws an error that names the fault; such a verdict settles nothing. */
export function checkedVerdict(what: string, given: unknown, outcomeVersion: number): FoundVerdict | 'still-unknown' {
  // Each member is checked before it is used.
  const verdict = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>
  const { kind } = verdict
  if (kind === 'still-unknown') return kind
  if (kind === 'never-happened') return { kind }
  if (kind !== 'happened' && kind !== 'declined') {
    throw misconfigured(
      `${what} must be of kind happened, declined, never-happened or still-unknown (got ${shown(given)})`,
    )
  }
  if ('outcome' in verdict) return { kind, outcome: checkedOutcome(what, verdict['outcome'], outcomeVersion) }
  if ('value' in verdict) return { kind, value: boundedJson(`${what}: the value`, verdict['value']) }
  throw misconfigured(
    `${what} is ${kind} and needs a value (of an effect) or an outcome (of the operation): json(201, …)`,
  )
}

/** As `checkedVerdict`, for evidence that arrives unasked: it must prove something. */
export function provenVerdict(what: string, given: unknown, outcomeVersion: number): FoundVerdict {
  const verdict = checkedVerdict(what, given, outcomeVersion)
  if (verdict !== 'still-unknown') return verdict
  throw misconfigured(`${what} is still-unknown: return undefined where nothing is proven`)
}

function checkedOutcome(what: string, given: unknown, version: number): Outcome {
  const { status, headers, body } = (given ?? {}) as { [Name in keyof Outcome]?: unknown }
  const isStatus = typeof status === 'number' && Number.isInteger(status) && status >= 200 && status <= 599
  if (isStatus && isHeaders(headers) && body instanceof Uint8Array) return { status, headers, body, version }
  throw misconfigured(
    `${what}: the outcome must be a response with a status of 200 to 599; create it with json(201, …)`,
  )
}

function isHeaders(headers: unknown): headers is readonly Header[] {
  const isHeader = (one: unknown) =>
    Array.isArray(one) && one.length === 2 && one.every(part => typeof part === 'string') && one[0] !== ''
  return Array.isArray(headers) && headers.every(isHeader)
}

/** The kind only: the rest may be confidential. */
function shown(given: unknown): string {
  if (typeof given !== 'object' || given === null) return String(given)
  return 'kind' in given ? `kind ${JSON.stringify(given.kind)}` : 'an object without kind'
}
