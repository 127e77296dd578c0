export const idempotencyKey = 'Idempotency-Key'
export const idempotentReplayed = 'Idempotent-Replayed'
export const idempotencyStored = 'Idempotency-Stored'
export const idempotencyKeyExpiresAt = 'Idempotency-Key-Expires-At'
export const latchkeyRetry = 'Latchkey-Retry'
/** RFC 7240, section 3. */
export const preferenceApplied = 'Preference-Applied'

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
  ...[idempotentReplayed, idempotencyStored, idempotencyKeyExpiresAt, latchkeyRetry].map(name => name.toLowerCase()),
])

const neverStoredPrefixes = ['access-control-', 'proxy-', 'ratelimit', 'x-ratelimit', 'x-rate-limit', 'x-b3-']

/**
 * Whether a response header may be kept with an outcome. `connectionNames` are the names that the same response's
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
  return new Set(listMembers(connection ?? '').map(name => name.toLowerCase()))
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

/** What is kept of a whole response head, in the order given and with every value of a repeated name. */
export function selectStoredHeaders(
  headers: readonly (readonly [string, string])[],
  neverStored?: NeverStored,
): [string, string][] {
  const connection = headers.filter(isConnection).map(([, value]) => value)
  const connectionNames = connection.length === 0 ? undefined : readConnectionNames(connection.join(','))
  const stored: [string, string][] = []
  for (const [name, value] of headers) {
    if (!isStoredHeader(name, connectionNames)) continue
    if (neverStored === undefined || !neverStored.has(name.toLowerCase())) stored.push([name, value])
  }
  return stored
}

function isConnection([name]: readonly [string, string]): boolean {
  return name.length === 'connection'.length && name.toLowerCase() === 'connection'
}

/**
 * The names a browser client needs: `allow` for Access-Control-Allow-Headers of the preflight, `expose` for
 * Access-Control-Expose-Headers of every answer. Location and Retry-After are not readable across origins by default.
 */
export function corsHeaders(): { allow: string[]; expose: string[] } {
  return {
    allow: [idempotencyKey, 'Prefer'],
    expose: [
      idempotentReplayed,
      idempotencyStored,
      idempotencyKeyExpiresAt,
      latchkeyRetry,
      preferenceApplied,
      'Location',
      'Retry-After',
      'Link',
    ],
  }
}

/**
 * Whether a request takes bytes of this Content-Encoding (RFC 9110, section 12.5.3). No Accept-Encoding accepts all; an
 * empty one accepts `identity` only. A list such as `gzip, br` is accepted when each of its codings is.
 */
export function acceptsEncoding(acceptEncoding: string | undefined, coding: string): boolean {
  if (acceptEncoding === undefined) return true
  const weights = readWeights(acceptEncoding)
  return listMembers(coding).every(member => accepts(weights, codingName(member)))
}

function accepts(weights: ReadonlyMap<string, number>, coding: string): boolean {
  const weight = weights.get(coding) ?? weights.get('*')
  return weight === undefined ? coding === 'identity' : weight > 0
}

function readWeights(acceptEncoding: string): Map<string, number> {
  return new Map(
    listMembers(acceptEncoding).map(member => {
      const [coding = '', ...parameters] = member.split(';').map(piece => piece.trim())
      const weight = parameters.find(parameter => /^q *=/i.test(parameter))
      const value = weight === undefined ? 1 : Number(weight.slice(weight.indexOf('=') + 1))
      // A weight we cannot read is taken as a refusal: decoded bytes suit every client, encoded ones do not.
      return [codingName(coding), Number.isNaN(value) ? 0 : value]
    }),
  )
}

function codingName(coding: string): string {
  const lower = coding.toLowerCase()
  // RFC 9110, section 8.4.1: recipients treat the old names as equal.
  if (lower === 'x-gzip') return 'gzip'
  return lower === 'x-compress' ? 'compress' : lower
}

function listMembers(list: string): string[] {
  return list
    .split(',')
    .map(member => member.trim())
    .filter(member => member !== '')
}
