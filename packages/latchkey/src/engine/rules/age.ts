/** How old a key or a request is, for operations that refuse it once everything about it may have been forgotten. */

/** Clocks of clients differ; a time further ahead than this is a wrong one, and would outlive every limit. */
const aheadMsMax = 5 * 60_000

export type Age =
  | { readonly kind: 'fine' }
  | { readonly kind: 'too-old' }
  | { readonly kind: 'invalid'; readonly detail: string }

/** By the time that a UUIDv7 carries in its first 48 bits (RFC 9562, section 5.7). */
export function ageOfKey(key: string, ageMsMax: number, nowMs: number): Age {
  const atMs = timeOfUuid(key)
  if (atMs === undefined) {
    return { kind: 'invalid', detail: 'The key must be a UUID of version 7: its time says how old the request is.' }
  }
  if (atMs - nowMs > aheadMsMax) {
    return {
      kind: 'invalid',
      detail: 'The time in the key is more than 5 minutes ahead: set the clock it is made with.',
    }
  }
  return { kind: nowMs - atMs > ageMsMax ? 'too-old' : 'fine' }
}

const uuidV7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

function timeOfUuid(key: string): number | undefined {
  const [, high, low] = uuidV7.exec(key) ?? []
  return high === undefined || low === undefined ? undefined : Number.parseInt(high + low, 16)
}

/** A request without a usable time counts as too old: it may be. */
export function isTooOld(madeAt: number | Date | undefined, ageMsMax: number, nowMs: number): boolean {
  const ageMs = nowMs - Number(madeAt)
  return !(ageMs <= ageMsMax && ageMs >= -aheadMsMax)
}
