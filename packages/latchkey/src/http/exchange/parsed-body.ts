/** The body of a request of which only the parsed value is left. */
import { type CanonicalValue, canonicalizeValue } from '../../engine/fingerprint/json/canonical-value.ts'
import { hasLoneSurrogate } from '../../engine/fingerprint/json/scalar.ts'
import { isJson } from '../../engine/fingerprint/fingerprint.ts'
import type { BodyRead } from './request.ts'

/**
 * Bytes that represent a parsed body in the fingerprint, or a refusal with the cure. A JSON body is refused where the parser may have
 * lost a difference between two requests: two integers past 2^53 can have become equal. A multipart body is always refused: its parts
 * are gone.
 */
export function parsedBody(value: unknown, contentType: string | undefined, cure: string): BodyRead {
  // There was a body, and nothing of it is left: taken for an empty one, it would be equal to every other.
  if (value === undefined) return { kind: 'unreadable', cure }
  if (value instanceof Uint8Array) return { kind: 'bytes', bytes: value }
  const essence = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const json = essence.startsWith('multipart/') ? undefined : canonical(value)
  if (json?.kind === 'canonical') return { kind: 'bytes', bytes: bytesOf(value, json.text, essence) }
  if (json?.kind === 'too-deep') return { kind: 'too-large', max: json.levelsMax, unit: 'levels' }
  return { kind: 'unsupported', cure }
}

/** Undefined for what JSON cannot represent: 1e400, and objects that a custom parser makes. */
function canonical(value: unknown): CanonicalValue | undefined {
  try {
    return canonicalizeValue(value)
  } catch {
    return undefined
  }
}

/** A byte that does not occur in UTF-8. */
const notText = Buffer.of(0xff)

/** No two values of one media type share their bytes: `5` and `"5"` differ, and so do an object and its text. */
function bytesOf(value: unknown, json: string, essence: string): Uint8Array {
  if (isJson(essence)) return Buffer.from(json)
  // The fingerprint reads these bytes as pairs: it would read a plus sign as a space, and sort the parts between ampersands.
  if (essence === 'application/x-www-form-urlencoded') return Buffer.from(encodeURIComponent(json))
  // Text of every other type is what was sent. A lone surrogate has no bytes, and is escaped in the JSON.
  const isText = typeof value === 'string' && !hasLoneSurrogate(value)
  return isText ? Buffer.from(value) : Buffer.concat([notText, Buffer.from(json)])
}
