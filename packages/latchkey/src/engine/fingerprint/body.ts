/** The body of a request in the form that is hashed: by its media type, so that equal content gives equal bytes. */
import { canonicalizeBytes, jsonBytesMax } from './json/canonical-json.ts'
import { type FieldOptions, type OnMissing, selectFields } from './select-fields.ts'
import { framePairs } from './form-pairs.ts'
import { frame } from './framing.ts'
import { roomBefore } from './json/cursor.ts'
import { decode } from './json/scalar.ts'
import { frameParts } from './multipart.ts'

/** The type without its parameters, in lower case; empty when there is none. */
export function essenceOf(mediaType: string | undefined): string {
  if (mediaType === undefined || mediaType === 'application/json') return mediaType ?? ''
  return mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** By its essence: RFC 8259, and the suffix of RFC 6839, section 3.1. */
export function isJson(essence: string): boolean {
  return essence === 'application/json' || essence.endsWith('+json')
}

export interface BodyParts {
  mediaType: string | undefined
  body: Uint8Array
}

/** Frames the media type, the rule by which the body was read, and the body: no two rules give the same bytes. */
export function frameBody({ mediaType, body }: BodyParts, options: FieldOptions, onMissing?: OnMissing): Uint8Array {
  const essence = essenceOf(mediaType)
  if (isJson(essence)) {
    const json = canonicalBody(body, options, onMissing)
    if (json !== undefined) return frameJson(essence, json)
  }
  // Forms larger than the limit for JSON are hashed raw as well: the cost of sorting grows faster than the body.
  if (essence === 'application/x-www-form-urlencoded' && body.length <= jsonBytesMax) {
    return frame([essence, 'form', framePairs(body)])
  }
  if (essence.startsWith('multipart/')) {
    const parts = frameParts(mediaType ?? '', body)
    if (parts !== undefined) return frame([essence, 'multipart', parts])
  }
  return frame([essence, 'raw', body])
}

const empty = Buffer.alloc(0)
/** Of the last essence only: a server sees few media types. */
let jsonHead: { essence: string; bytes: Uint8Array } = { essence: '', bytes: empty }

/** `frame([essence, 'json', json])`, written into the free bytes before the canonical text, so that the largest part is not copied again. */
function frameJson(essence: string, json: Uint8Array): Uint8Array {
  if (jsonHead.essence !== essence) jsonHead = { essence, bytes: frame([essence, 'json', empty]) }
  const head = jsonHead.bytes
  if (head.length > roomBefore) return frame([essence, 'json', json])
  const framed = Buffer.from(json.buffer, json.byteOffset - head.length, head.length + json.length)
  framed.set(head)
  framed.writeUInt32BE(json.length, head.length - 4)
  return framed
}

/** Undefined when the body has no canonical form; then all its bytes count, whatever the options exclude. */
function canonicalBody(body: Uint8Array, options: FieldOptions, onMissing?: OnMissing): Uint8Array | undefined {
  const canonical = canonicalizeBytes(body)
  if (canonical.kind !== 'canonical') return undefined
  if (options.include === undefined && options.exclude === undefined) return canonical.bytes
  const value = selectFields(JSON.parse(decode(canonical.bytes)), options, onMissing)
  // It was canonical, so it still has a canonical form: JSON.stringify only changes the order of names that look like integers.
  const selected = canonicalizeBytes(Buffer.from(JSON.stringify(value)))
  return selected.kind === 'canonical' ? selected.bytes : undefined
}
