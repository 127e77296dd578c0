/** How to ask an operation's provider about an unknown outcome, with the defaults. */
import { checkOptions, type ChecksOf } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import { callable, durationUpTo } from '../ports/option-kinds.ts'
import { quarantineDefaultMs } from './host.ts'
import type { EffectVerdict, OutcomeVerdict } from './verdict.ts'

/** What every question contains about the unknown row. */
export interface Question {
  /** The row's id, as in `x.id`, in listings and in log lines. */
  readonly id: string
  readonly scope: string
  readonly operation: string
  /** How often the row was claimed. */
  readonly attempts: number
  readonly unknownForMs: number
  /** When the row was created. Wall time of the store, for a provider that lists by time. */
  readonly createdAtMs: number
  /** Aborted at the deadline, `timeoutMs`. Pass it to the call. */
  readonly signal: AbortSignal
}

/** Asks about the open effect. */
export interface EffectQuestion<Input> extends Question {
  readonly effect: { readonly name: string; readonly epoch: number }
  /** The downstream key that was sent with the effect. */
  readonly key: string
  readonly input: Input
  /** The version of the definition that the row was created with. */
  readonly version: number
}

/** Asks about the outcome of phased work that threw `outcomeUnknown` outside an effect. */
export type OutcomeQuestion<Input> = Omit<EffectQuestion<Input>, 'effect' | 'key'>

/** Asks about guarded work. Its input is not stored: ask by the downstream key, or by the id in the provider's metadata. */
export interface GuardedQuestion extends Question {
  downstreamKey(effect: string, shape?: 'uuid' | 'opaque'): string
}

export interface LookupOptions {
  /**
   * How long after the row became unknown a "never happened" proves nothing, because the request may still be on its way. Default 10 min.
   * It must exceed the longest time a request can take to reach the provider's records.
   */
  readonly quarantineMs?: number
  /**
   * The wait before each look-up, the first counted from when the row became unknown; after the last one the row is parked. Default 30 s,
   * 2 min, 10 min, 1 h, 6 h, 24 h, 72 h. After a negative verdict inside the quarantine the next look-up comes at the quarantine's end at the latest.
   */
  readonly backoffMs?: readonly number[]
  /** The longest a look-up may take. Default 20 s; a look-up that takes longer has failed and is retried. */
  readonly timeoutMs?: number
}

export interface PhasedRegistration<Input> extends LookupOptions {
  /** Asks the provider about an open effect. A throw settles nothing; the look-up is retried. */
  readonly lookup: (question: EffectQuestion<Input>) => Promise<EffectVerdict> | EffectVerdict
  /** Asks about the outcome where the definition threw `outcomeUnknown` outside an effect. Absent: such a row is parked after the last try. */
  readonly lookupOutcome?: (question: OutcomeQuestion<Input>) => Promise<OutcomeVerdict> | OutcomeVerdict
}

export interface GuardedRegistration extends LookupOptions {
  /** Asks the provider about the operation's outcome. A throw settles nothing; the look-up is retried. */
  readonly lookup: (question: GuardedQuestion) => Promise<OutcomeVerdict> | OutcomeVerdict
}

/** A registered operation. The types of its question and verdict belong to the application; verdicts are checked on return. */
export interface Registered extends Required<LookupOptions> {
  readonly operation: string
  readonly kind: 'guarded' | 'phased'
  readonly lookup: (question: never) => unknown
  readonly lookupOutcome: ((question: never) => unknown) | undefined
}

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

export const backoffDefaultMs: readonly number[] = [
  30 * second,
  2 * minute,
  10 * minute,
  hour,
  6 * hour,
  24 * hour,
  72 * hour,
]

const tenYears = durationUpTo(10 * 366 * 24 * hour, '10 years')
/** A question that takes longer belongs in a ledger comparison. */
const tenMinutes = durationUpTo(10 * minute, '10 minutes')
const looksMax = 1_000

const guardedChecks: ChecksOf<GuardedRegistration> = {
  quarantineMs: tenYears,
  backoffMs: {
    wants: `a list of 1 to ${looksMax} durations, one before each look-up`,
    fits: value => Array.isArray(value) && value.length > 0 && value.length <= looksMax,
    each: tenYears,
  },
  timeoutMs: tenMinutes,
  lookup: callable,
}
const phasedChecks: ChecksOf<PhasedRegistration<never>> = { ...guardedChecks, lookupOutcome: callable }

interface Registrable {
  readonly name: string
  readonly kind: string | undefined
  readonly given: LookupOptions & { readonly lookup?: unknown; readonly lookupOutcome?: unknown }
}

export function checkedRegistration({ name, kind, given }: Registrable): Registered {
  if (kind === undefined) {
    throw misconfigured(
      `register: ${name} is not declared on this Latchkey. Register an operation that this Latchkey returned`,
    )
  }
  if (kind === 'atomic') {
    throw misconfigured(
      `register: ${name} is atomic and never becomes unknown, because it commits as a whole or not at all. Register phased, deferred or guarded operations`,
    )
  }
  const { lookup, lookupOutcome } = given
  if (lookupOutcome !== undefined && kind === 'guarded') {
    throw misconfigured(`register: ${name}: lookupOutcome is for phased and deferred operations only`)
  }
  checkOptions(`register: ${name}`, given, kind === 'guarded' ? guardedChecks : phasedChecks)
  if (lookup === undefined) throw misconfigured(`register: ${name} needs lookup: a function that asks its provider`)
  return {
    operation: name,
    kind: kind === 'guarded' ? 'guarded' : 'phased',
    // Called only with the question of this kind of operation; its return value is checked.
    lookup: lookup as Registered['lookup'],
    lookupOutcome: lookupOutcome as Registered['lookupOutcome'],
    quarantineMs: given.quarantineMs ?? quarantineDefaultMs,
    backoffMs: given.backoffMs ?? backoffDefaultMs,
    timeoutMs: given.timeoutMs ?? 20 * second,
  }
}
