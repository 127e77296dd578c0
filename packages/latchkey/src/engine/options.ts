/** Every option of an operation, with its default and the reason for it. */
import { checkOptions, type Checks } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import type { Outcome } from '../ports/outcome.ts'
import type { KeyRecord } from '../ports/store.ts'
import { idempotencyKey } from '../wire/headers.ts'
import { type KeyRules, namedKeyRules } from '../wire/key-rules.ts'
import { gatesOf, type OperationGates } from './limits/gates.ts'
import { type LimitHost, type LimitOptions, limitsOf } from './limits/limits.ts'
import type { NeverStored } from './rules/judge.ts'
import { findFingerprintFault, type FingerprintOptions } from './fingerprint/fingerprint.ts'
import type { Shared } from './operation.ts'
import { guardedChecks } from './option-checks.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** As for stored outcomes. Parsers have limits of their own, and most are lower. */
export const bodyBytesMaxDefault = 1_048_576

export interface KeyLimits {
  /** Default 1. With 16 or more, a counter or a date is no key. */
  readonly minLength?: number
  /** Default 255, the common ceiling of payment providers. */
  readonly maxLength?: number
  /** Default: none. Publish it: clients must know it. */
  readonly pattern?: RegExp
  /** Refuse what looks like an e-mail address: a key per customer would stop the second order of each. Default false. */
  readonly refuseEmails?: boolean
}

/** `uuid`: of any version. `ulid`: 26 characters of Crockford's base32. */
export type KeyFormat = 'uuid' | 'ulid' | KeyLimits

/**
 * Where a request carries its key: a header, or what the function returns. It gets what `scope` gets, after the body has been read and found
 * to be within `bodyBytesMax`. Undefined: the request has no key. A function that throws, or returns anything else than text, refuses the request
 * with 400 `invalid-key`.
 */
export type KeySource<Context> =
  | { readonly header: string }
  | ((context: Context) => string | undefined | Promise<string | undefined>)

export interface OperationOptions<Context = unknown> {
  /** How long an answer is stored, from completion. Default 24 h, the common floor; money movement often wants 30 days. */
  readonly retentionMs?: number
  /** Allows a retention under one hour. Default false: a client's retry queue easily outlives an hour. */
  readonly allowShortRetention?: boolean
  /**
   * Which statuses are stored and replayed. Default: below 500; where repeating is harmless (`onFailure: 'rerun'`, and atomic work,
   * which was rolled back) without 401, 403, 408, 425 and 429, which say "not now" rather than "done". A status below 500 that it
   * refuses leaves the key free for a retry, also under `hold`: it is your promise that nothing was done. Of a 5xx that it refuses,
   * `onFailure` decides.
   */
  readonly storeStatus?: (status: number) => boolean
  /**
   * Largest body that is stored, and that HTTP adapters hold in memory. Default 1 MiB. Of a larger answer everything but the body is
   * stored: the first client gets it whole, a retry gets 410, and nothing runs again. If its handler is still writing, the answer is sent
   * while it writes. Raise it where retries need large answers; each concurrent request may then hold as much.
   */
  readonly outcomeBytesMax?: number
  /**
   * The body of an answer is never stored: the first client gets it, a retry gets 410 `response-not-stored`, and nothing runs again. Default
   * false. For answers that hold a secret, such as a card number or a password. An empty body is stored.
   */
  readonly sensitive?: boolean
  /** Version written with each outcome. Default 1. Raise it when the answer's shape changes, and give `upgrade`. */
  readonly outcomeVersion?: number
  /** Lifts an outcome of an older version before it is replayed. Default: replayed as stored. */
  readonly upgrade?: (outcome: Outcome) => Outcome
  /** One line for operators (80 characters are stored). No personal data. Over HTTP it gets the parsed JSON body, if there is one. */
  readonly describe?: (input: unknown) => string
  /**
   * HTTP: where the key is. Default `{ header: 'Idempotency-Key' }`. Change it for clients that send it under another name
   * (`{ header: 'PayPal-Request-Id' }`) or in the body (`req => req.body.idempotency_key`).
   */
  readonly key?: KeySource<Context>
  /** What is accepted as a key. Default: 1 to 255 characters. Anything else is 400 `invalid-key`. */
  readonly keyFormat?: KeyFormat
  /** `scope` makes one key span all operations of a scope. Default `operation`. */
  readonly keyNamespace?: 'operation' | 'scope'
  /**
   * What a request gets while a concurrent duplicate runs: `refuse` (409, default), `wait` (bounded, then the same answer), or `accept` (a 202
   * that says it is in progress; HTTP only).
   */
  readonly onInProgress?: 'refuse' | 'wait' | 'accept'
  /** Longest wait under `wait`. Default 10 s: under the usual 30 s of clients and proxies. */
  readonly waitMs?: number
  /** HTTP: a request without a key is refused (default), or runs unprotected and is counted. A key is never invented. */
  readonly onMissingKey?: 'refuse' | 'run-unprotected'
  /** What a scope may do with this operation, on top of the limits of the Latchkey. Default: not limited. */
  readonly limits?: LimitOptions
  /** HTTP: what counts as the same request. */
  readonly fingerprint?: FingerprintOptions
  /**
   * HTTP: largest request body. Default 1 MiB. A larger one is 413 `body-too-large` before anything is reserved, and is not held in
   * memory. Raise it together with the limit of the framework's own parser, and with the one of `captureBody()`.
   */
  readonly bodyBytesMax?: number
  /** HTTP: the methods it applies to. Default POST and PATCH; the others are idempotent by themselves. */
  readonly methods?: readonly string[]
  /**
   * May this caller have what the row holds? Asked before a replay, a status, a wait, and before work that another caller began is
   * resumed or run again. Anything but `true` refuses. Needed where the scope is wider than the principal, or rights can be withdrawn.
   */
  readonly authorizeReplay?: (context: Context, record: KeyRecord) => boolean | Promise<boolean>
  /**
   * What a key is after its answer's retention: new again (`run`, default), or remembered as used (`gone`: a retry gets 410 for
   * `tombstoneMs`, and nothing runs). Choose `gone` where a client's retry may come after days and must not happen twice.
   */
  readonly onExpiry?: 'run' | 'gone'
  /** With `onExpiry: 'gone'`: for how long. Default 30 days. Each costs a narrow row. */
  readonly tombstoneMs?: number
  /**
   * Keys must be UUIDv7, and their time at most this long ago; otherwise a key without a row is refused with 400 `key-too-old`. Default:
   * any key, of any age. At most as long as the row is stored, so that no age is both accepted and forgotten.
   */
  readonly keyAgeMsMax?: number
  /**
   * HTTP: when the client made the request (a signed header, a field of its token), for keys that carry no time. Needs
   * `requestAgeMsMax`. Nothing, or a time more than 5 minutes ahead, counts as too old: a client cannot avoid the limit by leaving it out.
   */
  readonly requestTime?: (context: Context) => number | Date | undefined
  /** With `requestTime`: older than this and without a row is refused with 400 `key-too-old`. Bounded as `keyAgeMsMax`. */
  readonly requestAgeMsMax?: number
}

export interface GuardedOptions<Context = unknown> extends OperationOptions<Context> {
  /**
   * What a throw, a 5xx and a dead lease mean. No default: only you know. `hold`: it may have happened; it does not run again
   * until it is settled. `rerun`: repeating is harmless. `store`: the error answer is stored and replayed; a dead lease is held.
   */
  readonly onFailure: 'hold' | 'rerun' | 'store'
  /** How long the owner may be silent. Default 30 s: long enough for two missed heartbeats, short enough to wait for. */
  readonly leaseMs?: number
  /** Longest time a handler may hold its claim. Default 15 min; then `signal` fires and the lease is no longer renewed. */
  readonly holdMsMax?: number
  /**
   * What to do while the store is down. Default `refuse` (503). `run-unprotected` may run twice: counted, and marked in the answer. One
   * process runs one handler per key at a time even then. A process that is overloaded refuses either way: load is not an outage.
   */
  readonly onStoreDown?: 'refuse' | 'run-unprotected'
}

export type Settings<Context = unknown> = Required<Omit<OperationOptions<Context>, OptionalForGood | 'keyFormat'>> &
  Pick<OperationOptions<Context>, OptionalForGood> & {
    readonly keyFormat: KeyRules
    readonly onFailure: 'hold' | 'rerun' | 'store'
    readonly leaseMs: number
    readonly holdMsMax: number
    readonly onStoreDown: 'refuse' | 'run-unprotected'
    /** `http.neverStore` of the Latchkey that the operation belongs to. */
    readonly neverStored: NeverStored | undefined
    /** Of the Latchkey and of the operation together. Undefined: nothing is limited. */
    readonly gates: OperationGates | undefined
  }
type OptionalForGood =
  | 'storeStatus'
  | 'upgrade'
  | 'describe'
  | 'authorizeReplay'
  | 'keyAgeMsMax'
  | 'requestTime'
  | 'requestAgeMsMax'
  | 'limits'

/** `checks`: of the operation's kind. */
export function settingsOf<C>(
  operation: string,
  options: OperationOptions<C> & Partial<GuardedOptions<C>>,
  checks: Checks = guardedChecks,
): Settings<C> {
  checkOptions(operation, options, checks)
  const settings: Settings<C> = {
    retentionMs: 24 * hour,
    allowShortRetention: false,
    outcomeBytesMax: 1_048_576,
    sensitive: false,
    outcomeVersion: 1,
    key: { header: idempotencyKey },
    keyFormat: {},
    keyNamespace: 'operation',
    onInProgress: 'refuse',
    waitMs: 10 * second,
    onMissingKey: 'refuse',
    fingerprint: {},
    bodyBytesMax: bodyBytesMaxDefault,
    methods: ['POST', 'PATCH'],
    onExpiry: 'run',
    tombstoneMs: 30 * 24 * hour,
    onFailure: 'rerun',
    leaseMs: 30 * second,
    holdMsMax: 15 * minute,
    onStoreDown: 'refuse',
    neverStored: undefined,
    gates: undefined,
    // An option that is undefined was not given.
    ...(Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Omit<
      typeof options,
      'keyFormat'
    >),
    ...(options.keyFormat === undefined ? {} : { keyFormat: keyFormatOf(options.keyFormat) }),
  }
  checkKeySource(operation, settings)
  checkRetention(operation, settings)
  checkExpiry(operation, options)
  checkAges(operation, settings)
  const fault = findFingerprintFault(settings.fingerprint)
  if (fault !== undefined) throw misconfigured(`${operation}: ${fault}`)
  return settings
}

/** With what it has of its Latchkey. */
export function boundSettings<C>(
  settings: Settings<C>,
  core: LimitHost,
  { neverStored, name }: Pick<Shared<C>, 'neverStored'> & { readonly name: string },
): Settings<C> {
  return { ...settings, neverStored, gates: gatesOf(core.limits, limitsOf(settings.limits, core, name)) }
}

function keyFormatOf(format: KeyFormat): KeyRules {
  return typeof format === 'string' ? namedKeyRules[format] : format
}

/** What a claim carries of `onExpiry`. */
export function tombstoneOf({ onExpiry, tombstoneMs }: Pick<Settings, 'onExpiry' | 'tombstoneMs'>): number | undefined {
  return onExpiry === 'gone' ? tombstoneMs : undefined
}

function checkKeySource<C>(operation: string, { key }: Settings<C>): void {
  if (typeof key === 'function' || key.header !== undefined) return
  throw misconfigured(`${operation}: key must name a header, such as { header: 'PayPal-Request-Id' }, or be a function`)
}

function checkExpiry<C>(operation: string, { onExpiry = 'run', tombstoneMs }: OperationOptions<C>): void {
  if (onExpiry === 'run' && tombstoneMs !== undefined)
    throw misconfigured(`${operation}: tombstoneMs requires onExpiry: 'gone'`)
}

function checkAges<C>(operation: string, settings: Settings<C>): void {
  const { requestTime, requestAgeMsMax, retentionMs, onExpiry, tombstoneMs } = settings
  if ((requestTime === undefined) !== (requestAgeMsMax === undefined)) {
    const [given, missing] =
      requestTime === undefined ? ['requestAgeMsMax', 'requestTime'] : ['requestTime', 'requestAgeMsMax']
    throw misconfigured(`${operation}: ${given} requires ${missing}`)
  }
  const knownMs = retentionMs + (onExpiry === 'gone' ? tombstoneMs : 0)
  for (const name of ['keyAgeMsMax', 'requestAgeMsMax'] as const) {
    const value = settings[name]
    if (value === undefined || value <= knownMs) continue
    throw misconfigured(
      `${operation}: ${name} must be at most ${knownMs}, as long as rows are stored (got ${value}): in the gap a retry would be accepted and run again. Lower it, or raise retentionMs or tombstoneMs`,
    )
  }
}

function checkRetention<C>(operation: string, settings: Settings<C>): void {
  const floor = settings.leaseMs + settings.holdMsMax
  if (settings.retentionMs < floor) {
    throw misconfigured(
      `${operation}: retentionMs must be at least leaseMs + holdMsMax, ${floor} (got ${settings.retentionMs}): an answer could expire while a duplicate still runs. Raise it, or lower leaseMs and holdMsMax`,
    )
  }
  if (settings.retentionMs < hour && !settings.allowShortRetention) {
    throw misconfigured(
      `${operation}: retentionMs must be at least one hour (got ${settings.retentionMs}), because a later retry runs again. Raise it, or set allowShortRetention: true`,
    )
  }
}
