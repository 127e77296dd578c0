import { canonicalizeBytes, jsonBytesMax } from './json/canonical-json.ts'
import { type FieldOptions, type OnMissing, selectFields } from './select-fields.ts'
import { framePairs } from './form-pairs.ts'
import { frame } from './framing.ts'
import { roomBefore } from './json/cursor.ts'
import { decode } from './json/string.ts'
import { essenceOf, isJson } from './media-type.ts'
import { frameParts } from './multipart.ts'

export interface BodyParts {
  mediaType: string | undefined
  body: Uint8Array
}

/** The media type and the body, with the rule by which it was read, so that no two rules share a form. */
export function frameBody({ mediaType, body }: BodyParts, options: FieldOptions, onMissing?: OnMissing): Uint8Array {
  const essence = essenceOf(mediaType)
  if (isJson(essence)) {
    const json = canonicalBody(body, options, onMissing)
    if (json !== undefined) return frameJson(essence, json)
  }
  // Forms past the limit of JSON are hashed raw too: sorting is work that grows faster than the body.
  if (essence === 'application/x-www-form-urlencoded' && body.length <= jsonBytesMax) {
    return frame([essence, 'form', framePairs(body)])
  }
  if (essence.startsWith('multipart/')) {
    const parts = frameParts(mediaType ?? '', body)
    if (parts !== undefined) return frame([essence, 'multipart', parts])
  }
  return frame([essence, 'raw', body])
}

const absent = Buffer.alloc(0)
/** The last one: a server sees few types. */
let jsonHead: { essence: string; bytes: Uint8Array } = { essence: '', bytes: absent }

/** `frame([essence, 'json', json])`, written into the room before the canonical text: the largest part is not copied again. */
function frameJson(essence: string, json: Uint8Array): Uint8Array {
  if (jsonHead.essence !== essence) jsonHead = { essence, bytes: frame([essence, 'json', absent]) }
  const head = jsonHead.bytes
  if (head.length > roomBefore) return frame([essence, 'json', json])
  const framed = Buffer.from(json.buffer, json.byteOffset - head.length, head.length + json.length)
  framed.set(head)
  framed.writeUInt32BE(json.length, head.length - 4)
  return framed
}

/** Undefined when the body has no canonical form; then all its bytes count, whatever the options leave out. */
function canonicalBody(body: Uint8Array, options: FieldOptions, onMissing?: OnMissing): Uint8Array | undefined {
  const canonical = canonicalizeBytes(body)
  if (canonical.kind !== 'canonical') return undefined
  if (options.include === undefined && options.exclude === undefined) return canonical.bytes
  const value = selectFields(JSON.parse(decode(canonical.bytes)), options, onMissing)
  // Canonical once, hence canonical again: JSON.stringify only changes the order of names that look like integers.
  const selected = canonicalizeBytes(Buffer.from(JSON.stringify(value)))
  return selected.kind === 'canonical' ? selected.bytes : undefined
}
