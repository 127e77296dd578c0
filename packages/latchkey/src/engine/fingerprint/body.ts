import { canonicalizeBytes, jsonBytesMax } from './canonical-json.ts'
import { excludeFields, includeFields, parseFieldPath } from './field-paths.ts'
import { framePairs } from './form-pairs.ts'
import { frame } from './framing.ts'
import { essenceOf } from './media-type.ts'
import { frameParts } from './multipart.ts'

export interface BodyParts {
  mediaType: string | undefined
  body: Uint8Array
}

export interface FieldOptions {
  include?: readonly string[]
  exclude?: readonly string[]
}

/** The media type and the body, with the rule by which it was read, so that no two rules share a form. */
export function frameBody({ mediaType, body }: BodyParts, options: FieldOptions): Uint8Array {
  const essence = essenceOf(mediaType)
  if (essence === 'application/json' || essence.endsWith('+json')) {
    const json = canonicalBody(body, options)
    if (json !== undefined) return frame([essence, 'json', json])
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

/** Undefined when the body has no canonical form; then all its bytes count, whatever the options leave out. */
function canonicalBody(body: Uint8Array, { include, exclude }: FieldOptions): Uint8Array | undefined {
  const canonical = canonicalizeBytes(body)
  if (canonical.kind !== 'canonical') return undefined
  if (include === undefined && exclude === undefined) return canonical.bytes
  let value: unknown = JSON.parse(Buffer.from(canonical.bytes).toString('utf8'))
  if (include !== undefined) value = includeFields(value, include.map(parseFieldPath))
  if (exclude !== undefined) value = excludeFields(value, exclude.map(parseFieldPath))
  // Canonical once, hence canonical again: JSON.stringify only changes the order of names that look like integers.
  const selected = canonicalizeBytes(Buffer.from(JSON.stringify(value)))
  return selected.kind === 'canonical' ? selected.bytes : undefined
}
