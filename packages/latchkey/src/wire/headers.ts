export const idempotencyKey = 'Idempotency-Key'
export const idempotentReplayed = 'Idempotent-Replayed'
export const idempotencyStored = 'Idempotency-Stored'
export const idempotencyKeyExpiresAt = 'Idempotency-Key-Expires-At'
export const latchkeyRetry = 'Latchkey-Retry'
/** Read by client libraries that Stainless generates (OpenAI, Anthropic, Modern Treasury): `true` or `false`, before any rule of their own. */
export const xShouldRetry = 'X-Should-Retry'
/** The same for Stripe's own libraries. */
export const stripeShouldRetry = 'Stripe-Should-Retry'
/** Read by the same libraries, and by Azure's, before Retry-After. */
export const retryAfterMilliseconds = 'Retry-After-Ms'
/** RFC 7240, section 3. */
export const preferenceApplied = 'Preference-Applied'

/**
 * Whether a request accepts bytes of this Content-Encoding (RFC 9110, section 12.5.3). Without Accept-Encoding all are accepted; an empty one
 * accepts only `identity`. A list such as `gzip, br` is accepted when each of its codings is.
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
      // An unreadable weight counts as a refusal: decoded bytes suit every client, encoded ones do not.
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
