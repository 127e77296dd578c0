/** What a look-up, a webhook or a ledger says, in its user's words, and the check of it. */
import { misconfigured } from '../ports/errors.ts'
import type { Header, Outcome } from '../ports/outcome.ts'
import type { FoundVerdict } from '../ports/reconciliation.ts'
import { boundedJson } from '../engine/steps/json.ts'

/** The effect happened, or was refused for good; `value` is what its call would have returned, and the remaining steps go on with it. */
export interface EffectFound {
  readonly kind: 'happened' | 'declined'
  readonly value: unknown
}

/** The whole happened, or was refused for good; clients get this answer from now on: `json(201, …)`. */
export interface OutcomeFound {
  readonly kind: 'happened' | 'declined'
  readonly outcome: Outcome
}

/** The provider knows nothing of it. Counts only when it was found after the quarantine; then it is tried again. */
export interface NeverHappened {
  readonly kind: 'never-happened'
}

/** Nobody can tell yet: asked again later. Say this, too, when you are not sure. */
export interface StillUnknown {
  readonly kind: 'still-unknown'
}

/** About an effect of phased or deferred work. */
export type EffectVerdict = EffectFound | NeverHappened | StillUnknown
/** About guarded work, or phased work that said itself that its outcome is unknown. */
export type OutcomeVerdict = OutcomeFound | NeverHappened | StillUnknown

/** Which row evidence is about, and what it says. */
export type Statement = SubjectName & { readonly verdict: EffectFound | OutcomeFound | NeverHappened }

/**
 * By the downstream key that was sent with the effect; the row's id beside it finds evidence about a key that was given up, too. Or by the
 * row's id (`x.id`, sent as metadata) alone: for guarded work, and for phased work with the effect's name unless it is the open one. Prefer the
 * key: an id does not tell one try of an effect from the next.
 */
export type SubjectName =
  | { readonly downstreamKey: string; readonly id?: string }
  | { readonly id: string; readonly effect?: string; readonly downstreamKey?: never }

/** From the edge to the port. Throws a sentence that names what does not fit; such a verdict settles nothing. */
export function checkedVerdict(what: string, given: unknown, outcomeVersion: number): FoundVerdict | 'still-unknown' {
  // Each member is checked before anybody relies on it.
  const verdict = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>
  const { kind } = verdict
  if (kind === 'still-unknown') return kind
  if (kind === 'never-happened') return { kind }
  if (kind !== 'happened' && kind !== 'declined') {
    throw misconfigured(
      `${what} must be of kind happened, declined, never-happened or still-unknown, and is ${shown(given)}`,
    )
  }
  if ('outcome' in verdict) return { kind, outcome: checkedOutcome(what, verdict['outcome'], outcomeVersion) }
  if ('value' in verdict) return { kind, value: boundedJson(`${what}: the value`, verdict['value']) }
  throw misconfigured(`${what} is ${kind} and needs a value (of an effect) or an outcome (of the whole): json(201, …)`)
}

function checkedOutcome(what: string, given: unknown, version: number): Outcome {
  const { status, headers, body } = (given ?? {}) as { [Name in keyof Outcome]?: unknown }
  const isStatus = typeof status === 'number' && Number.isInteger(status) && status >= 200 && status <= 599
  if (isStatus && isHeaders(headers) && body instanceof Uint8Array) return { status, headers, body, version }
  throw misconfigured(`${what}: the outcome is no answer with a status of 200 to 599; make it with json(201, …)`)
}

function isHeaders(headers: unknown): headers is readonly Header[] {
  const isHeader = (one: unknown) =>
    Array.isArray(one) && one.length === 2 && one.every(part => typeof part === 'string')
  return Array.isArray(headers) && headers.every(isHeader)
}

/** The kind only: the rest may hold what belongs into no log. */
function shown(given: unknown): string {
  if (typeof given !== 'object' || given === null) return String(given)
  return 'kind' in given ? `of kind ${JSON.stringify(given.kind)}` : 'without a kind'
}
