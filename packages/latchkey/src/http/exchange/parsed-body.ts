/** The body of a request of which only the parsed value is left. */
import type { BodyRead } from './request-view.ts'

/**
 * Bytes that stand for a parsed body in the fingerprint, or a refusal that names the cure. A JSON body is refused where the
 * parser may have lost something that tells two requests apart: two integers past 2^53 can have become one. A multipart body is
 * always refused: its parts are gone.
 */
export function parsedBody(value: unknown, contentType: string | undefined, cure: string): BodyRead {
  if (value === undefined || value === null) return { kind: 'bytes', bytes: new Uint8Array() }
  if (value instanceof Uint8Array) return { kind: 'bytes', bytes: value }
  if (typeof value === 'string') return { kind: 'bytes', bytes: Buffer.from(value) }
  if (contentType?.trim().toLowerCase().startsWith('multipart/') === true || !isCarried(value)) {
    return { kind: 'unreadable', cure }
  }
  const json = sortedJson(value)
  // The fingerprint reads these bytes as pairs: a plus sign would become a space, and what stands between two ampersands be sorted.
  return { kind: 'bytes', bytes: Buffer.from(isForm(contentType) ? encodeURIComponent(json) : json) }
}

function isForm(contentType: string | undefined): boolean {
  return contentType?.trim().toLowerCase().startsWith('application/x-www-form-urlencoded') === true
}

function isCarried(value: unknown): boolean {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
    case 'string':
    case 'boolean':
      return true
    case 'object':
      return value === null || Object.values(value).every(isCarried)
    default:
      return false
  }
}

/**
 * Members in the order of their names, because a parsed form keeps the order it was sent in and the fingerprint reads these
 * bytes under the form's media type.
 */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member
    return Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}
