/** How the provider of an operation is asked, with the defaults. */
import { checkOptions, type ChecksOf } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import { callable, durationUpTo } from '../ports/option-kinds.ts'
import { quarantineDefaultMs } from './host.ts'
import type { EffectVerdict, OutcomeVerdict } from './verdict.ts'

/** What every question tells about the row that is unknown. */
export interface Question {
  /** The row's id, as in `x.id`, in listings and in log lines. */
  readonly id: string
  readonly scope: string
  readonly operation: string
  /** How often the row was granted. */
  readonly attempts: number
  readonly unknownForMs: number
  /** When the row began. Wall time of the store, for a provider that lists by time. */
  readonly createdAtMs: number
  /** Aborted at the deadline, `timeoutMs`. Hand it on to the call. */
  readonly signal: AbortSignal
}

/** What became of the effect that is open? */
export interface EffectQuestion<Input> extends Question {
  readonly effect: { readonly name: string; readonly epoch: number }
  /** The downstream key that was sent with it. */
  readonly key: string
  readonly input: Input
  /** The version of the definition that the row began with. */
  readonly version: number
}

/** What became of the whole, of phased work that said itself that its outcome is unknown? */
export type WholeQuestion<Input> = Omit<EffectQuestion<Input>, 'effect' | 'key'>

/** What became of guarded work? Its input is not stored: ask by the downstream key, or by the id in the provider's metadata. */
export interface GuardedQuestion extends Question {
  downstreamKey(effect: string, shape?: 'uuid' | 'opaque'): string
}

export interface LookupOptions {
  /**
   * How long after the row became unknown a "never happened" proves nothing: the request may still be on its way. Default 10 min.
   * Make it longer than the longest time a request can live between here and the provider's books.
   */
  readonly quarantineMs?: number
  /**
   * The wait before each look-up, the first counted from when the row became unknown; after the last one the row is parked. Default 30 s,
   * 2 min, 10 min, 1 h, 6 h, 24 h, 72 h. A negative verdict inside the quarantine is asked again at its end, or sooner as said here.
   */
  readonly backoffMs?: readonly number[]
  /** The longest a look-up may take. Default 20 s; a look-up that takes longer has failed, and is asked again. */
  readonly timeoutMs?: number
}

export interface PhasedRegistration<Input> extends LookupOptions {
  /** Asks the provider about an open effect. A throw settles nothing; it is asked again. */
  readonly lookup: (question: EffectQuestion<Input>) => Promise<EffectVerdict> | EffectVerdict
  /** The same, where the definition threw `outcomeUnknown` outside an effect. Absent: such a row is parked in the end. */
  readonly lookupWhole?: (question: WholeQuestion<Input>) => Promise<OutcomeVerdict> | OutcomeVerdict
}

export interface GuardedRegistration extends LookupOptions {
  /** Asks the provider about the whole. A throw settles nothing; it is asked again. */
  readonly lookup: (question: GuardedQuestion) => Promise<OutcomeVerdict> | OutcomeVerdict
}

/** An operation as registered: the types of question and verdict are its caller's, checked where they come back. */
export interface Registered extends Required<LookupOptions> {
  readonly operation: string
  readonly kind: 'guarded' | 'phased'
  readonly lookup: (question: never) => unknown
  readonly lookupWhole: ((question: never) => unknown) | undefined
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
/** A question that takes longer belongs into the ledger comparison. */
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
const phasedChecks: ChecksOf<PhasedRegistration<never>> = { ...guardedChecks, lookupWhole: callable }

interface Registrable {
  readonly name: string
  readonly kind: string | undefined
  readonly given: LookupOptions & { readonly lookup?: unknown; readonly lookupWhole?: unknown }
}

export function checkedRegistration({ name, kind, given }: Registrable): Registered {
  if (kind === undefined) {
    throw misconfigured(`register: ${name} is not declared on this Latchkey. Register the operation that it gave you`)
  }
  if (kind === 'atomic') {
    throw misconfigured(
      `register: ${name} is atomic, and is never unknown: it commits whole or not at all. Register phased, deferred or guarded operations`,
    )
  }
  const { lookup, lookupWhole } = given
  if (lookupWhole !== undefined && kind === 'guarded') {
    throw misconfigured(`register: ${name}: lookupWhole is a function, for phased and deferred operations only`)
  }
  checkOptions(`register: ${name}`, given, kind === 'guarded' ? guardedChecks : phasedChecks)
  if (lookup === undefined) throw misconfigured(`register: ${name} needs lookup: a function that asks its provider`)
  return {
    operation: name,
    kind: kind === 'guarded' ? 'guarded' : 'phased',
    // Called with the question of this kind of operation only; what it returns is checked.
    lookup: lookup as Registered['lookup'],
    lookupWhole: lookupWhole as Registered['lookupWhole'],
    quarantineMs: given.quarantineMs ?? quarantineDefaultMs,
    backoffMs: given.backoffMs ?? backoffDefaultMs,
    timeoutMs: given.timeoutMs ?? 20 * second,
  }
}
