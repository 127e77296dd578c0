/** Which headers of an answer are stored with it. */
import type { Header } from '../../ports/outcome.ts'

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
  // Ours.
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
