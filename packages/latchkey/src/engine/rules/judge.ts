/**
 * What a handler's end means for its row, and so which answers are stored, and which of their headers. Pure.
 *
 * The handler's own report comes first: `notExecuted` frees the key, `outcomeUnknown` holds it. Then `storeStatus`, the operation's
 * rule for a status. Then the table. Returned and thrown answers are judged alike: what the client gets decides.
 */
import { isError, isLatchkeyError } from '../../ports/errors.ts'
import type { Header, Outcome } from '../../ports/outcome.ts'
import type { Attempt } from '../answer.ts'
import type { Settings } from '../options.ts'

export type Judgement =
  | { readonly kind: 'keep'; readonly outcome: Outcome }
  /** Proven, or declared by the operation: nothing happened, a retry may run. */
  | { readonly kind: 'retryable'; readonly errorCode: string; readonly dueInMs?: number }
  | { readonly kind: 'unknown'; readonly errorCode: string }

/** `resume`: phased work, whose finished steps are stored. Atomic work counts as `rerun`: what is not stored was rolled back. */
type OnFailure = Settings['onFailure'] | 'resume'

type StorageRules = 'outcomeBytesMax' | 'outcomeVersion' | 'neverStored' | 'sensitive'

interface Rules extends Pick<Settings, StorageRules> {
  readonly onFailure: OnFailure
  readonly storeStatus?: Settings['storeStatus'] | undefined
}

type Answered = 'done' | 'not-now' | 'failed'

/**
 * Under `hold` no status frees the key, because a handler may have acted before it answered 429. Where repeating is harmless a
 * "not now" is worth a retry. What a phased definition returns is its outcome; only a failure is run again.
 */
const verdicts: Readonly<Record<Answered, Readonly<Record<OnFailure, Judgement['kind']>>>> = {
  done: { hold: 'keep', rerun: 'keep', store: 'keep', resume: 'keep' },
  'not-now': { hold: 'keep', rerun: 'retryable', store: 'keep', resume: 'keep' },
  failed: { hold: 'unknown', rerun: 'retryable', store: 'keep', resume: 'retryable' },
}

/** They say "not now" rather than "done": a retry must be able to succeed. */
const notNow: ReadonlySet<number> = new Set([401, 403, 408, 425, 429])

function classOf(status: number): Answered {
  if (status >= 500) return 'failed'
  return notNow.has(status) ? 'not-now' : 'done'
}

/** `saidNotExecuted`: the handler called `execution.notExecuted()` before it answered. */
export function judge(attempt: Attempt, rules: Rules, saidNotExecuted = false): Judgement {
  const said = saidByHandler(attempt)
  if (said !== undefined) return said
  if (saidNotExecuted) return { kind: 'retryable', errorCode: 'not-executed' }
  const kind = attempt.kind === 'threw' ? verdicts.failed[rules.onFailure] : verdictOf(attempt, rules)
  return kind === 'keep' ? keep(outcomeOf(attempt), rules) : { kind, errorCode: errorCodeOf(attempt) }
}

/** Whether an answer of this status is stored, if the handler reports nothing else. */
export function isStored(status: number, rules: Pick<Rules, 'storeStatus' | 'onFailure'>): boolean {
  return verdictOfStatus(status, rules) === 'keep'
}

function verdictOf(attempt: Exclude<Attempt, { kind: 'threw' }>, rules: Rules): Judgement['kind'] {
  if (attempt.kind === 'answered') return verdictOfStatus(attempt.outcome.status, rules)
  // It ran, and its answer is gone: that it ran is stored, unless the answer was a failure.
  return attempt.status < 500 ? 'keep' : verdicts.failed[rules.onFailure]
}

function verdictOfStatus(status: number, rules: Pick<Rules, 'storeStatus' | 'onFailure'>): Judgement['kind'] {
  const byTable = verdicts[classOf(status)][rules.onFailure]
  const stores = storeStatusOf(rules, status)
  if (stores === undefined) return byTable
  if (stores) return 'keep'
  // The usual `status < 500` refuses every 5xx. That says nothing about what happened.
  return status < 500 ? 'retryable' : byTable
}

/** Undefined: the operation has no rule of its own. The handler has run, so a `storeStatus` that throws must not cost its answer. */
function storeStatusOf({ storeStatus }: Pick<Rules, 'storeStatus'>, status: number): boolean | undefined {
  try {
    return storeStatus?.(status)
  } catch {
    return undefined
  }
}

function outcomeOf(attempt: Attempt): Outcome {
  if (attempt.kind === 'answered') return attempt.outcome
  if (attempt.kind === 'threw') return failureOutcome(attempt.error)
  return { status: attempt.status, headers: [], body: undefined, version: 0 }
}

function errorCodeOf(attempt: Attempt): string {
  if (attempt.kind === 'unreplayable') return `http-${attempt.status}`
  if (attempt.kind === 'threw' || attempt.error !== undefined) return codeOf(attempt.error)
  return `http-${attempt.outcome.status}`
}

/** `notExecuted` and `outcomeUnknown` decide in every kind, also as the cause of the error that was thrown. */
function saidByHandler(attempt: Attempt): Judgement | undefined {
  const chainMax = 8
  let error = attempt.kind === 'unreplayable' ? undefined : attempt.error
  for (let depth = 0; depth < chainMax && error !== undefined; depth++) {
    if (isLatchkeyError(error, 'not-executed')) return { kind: 'retryable', errorCode: codeOf(error.cause ?? error) }
    if (isLatchkeyError(error, 'outcome-unknown')) return { kind: 'unknown', errorCode: codeOf(error.cause ?? error) }
    error = isError(error) ? error.cause : undefined
  }
  return undefined
}

/** A code for operators, never a message: messages may hold personal data. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'error'
  if ('code' in error && typeof error.code === 'string') return error.code.slice(0, 64)
  return 'name' in error && typeof error.name === 'string' ? error.name.slice(0, 64) : 'error'
}

/** The status that marks a stored throw of a plain function. */
export const storedFailureStatus = 500

/** What is stored for a throw that no error handler rendered. */
export function failureOutcome(error: unknown): Outcome {
  const body = Buffer.from(JSON.stringify({ error: codeOf(error) }))
  return { status: storedFailureStatus, headers: [['content-type', 'application/json']], body, version: 0 }
}

/** What still helps a client whose answer was too large to store. */
const storedWithoutBody = new Set(['location', 'etag'])

function keep(outcome: Outcome, { neverStored, outcomeVersion, ...limits }: Rules): Judgement {
  const headers = selectStoredHeaders(outcome.headers, neverStored)
  const whole = { ...outcome, headers, version: outcomeVersion }
  return { kind: 'keep', outcome: bodyBytesMax(limits) >= bytesOf(outcome) ? whole : withoutBody(whole) }
}

/** A body that is already gone is larger than any. */
function bytesOf({ body }: Outcome): number {
  return body === undefined ? Number.POSITIVE_INFINITY : body.byteLength
}

/** The largest body that is stored. */
export function bodyBytesMax(rules: Pick<Settings, 'outcomeBytesMax' | 'sensitive'>): number {
  return rules.sensitive ? 0 : rules.outcomeBytesMax
}

/** Replayed as "it happened, and its answer was not stored". */
export function withoutBody({ status, version, headers }: Outcome): Outcome {
  const stored = headers.filter(([name]: Header) => storedWithoutBody.has(name.toLowerCase()))
  return { status, version, headers: stored, body: undefined }
}

// Facts about one exchange, one connection or one caller. Replayed to another they would be wrong or would leak.
const neverStoredNames: ReadonlySet<string> = new Set([
  // Hop-by-hop: RFC 9110, section 7.6.1, and what older software sends.
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  // Credentials and sessions. RFC 9110, section 11; RFC 8053 and 9449; the names that frameworks and gateways use.
  ...['set-cookie', 'set-cookie2', 'cookie', 'authorization', 'www-authenticate', 'authentication-info'],
  ...['optional-www-authenticate', 'authentication-control', 'dpop', 'dpop-nonce', 'clear-site-data', 'set-login'],
  ...['x-auth-token', 'x-access-token', 'x-refresh-token', 'x-id-token', 'x-session-token', 'x-amz-security-token'],
  ...['x-csrf-token', 'x-xsrf-token', 'csrf-token', 'xsrf-token', 'x-session-id', 'x-api-key', 'x-api-token', 'x-jwt'],
  // Made anew for every answer: the length follows from the bytes, which a replay may have to decode.
  ...['date', 'age', 'content-length', 'retry-after', 'server-timing', 'alt-svc', 'via'],
  // Request and trace ids: they name the exchange, and the replay is another one.
  ...['traceparent', 'tracestate', 'traceresponse', 'baggage', 'b3', 'request-id', 'x-request-id', 'x-correlation-id'],
  ...['correlation-id', 'x-trace-id', 'x-amzn-trace-id', 'x-amzn-requestid', 'x-cloud-trace-context', 'cf-ray'],
  // Ours. A header without a name marks an outcome that is encrypted.
  '',
  ...['idempotent-replayed', 'idempotency-stored', 'idempotency-key-expires-at', 'latchkey-retry'],
])

const neverStoredPrefixes = ['access-control-', 'proxy-', 'ratelimit', 'x-ratelimit', 'x-rate-limit', 'x-b3-']

/**
 * Whether a response header may be stored with an outcome. `connectionNames` are the names that the same response's
 * Connection header declares hop-by-hop; see `readConnectionNames`.
 */
export function isStoredHeader(name: string, connectionNames?: ReadonlySet<string>): boolean {
  const lower = name.toLowerCase()
  return connectionNames?.has(lower) !== true && isStoredName(lower)
}

/** A service's own few names, judged once each. Bounded, because a handler may invent names. */
const judgedNames = new Map<string, boolean>()
const judgedMax = 500

function isStoredName(lower: string): boolean {
  const judged = judgedNames.get(lower)
  if (judged !== undefined) return judged
  const never = lower.startsWith(':') || neverStoredNames.has(lower)
  const stored = !never && !neverStoredPrefixes.some(prefix => lower.startsWith(prefix))
  if (judgedNames.size < judgedMax) judgedNames.set(lower, stored)
  return stored
}

/** The lower-case names in a Connection header: RFC 9110, section 7.6.1, makes each of them hop-by-hop. */
export function readConnectionNames(connection: string | undefined): ReadonlySet<string> {
  return new Set((connection ?? '').split(',').map(name => name.trim().toLowerCase()))
}

/** The names that a site adds to those which are never stored, in lower case. */
export type NeverStored = ReadonlySet<string>

/** Every name in the form in which headers are looked up; undefined for a list that holds something else. */
export function readNeverStored(names: readonly string[]): NeverStored | undefined {
  const valid = Array.isArray(names) && names.every(name => typeof name === 'string' && fieldName.test(name))
  return valid ? new Set(names.map(name => name.toLowerCase())) : undefined
}

/** A token: RFC 9110, section 5.1. */
const fieldName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** What is stored of a whole response head, in the order given and with every value of a repeated name. */
export function selectStoredHeaders(headers: readonly Header[], neverStored?: NeverStored): [string, string][] {
  const connection = headers.filter(isConnection).map(([, value]) => value)
  const connectionNames = connection.length === 0 ? undefined : readConnectionNames(connection.join(','))
  const stored: [string, string][] = []
  for (const [name, value] of headers) {
    if (!isStoredHeader(name, connectionNames)) continue
    if (neverStored === undefined || !neverStored.has(name.toLowerCase())) stored.push([name, value])
  }
  return stored
}

function isConnection([name]: Header): boolean {
  return name.length === 'connection'.length && name.toLowerCase() === 'connection'
}
