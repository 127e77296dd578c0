/** What counts as the same request: its parts, hashed; and its body in the form that is hashed, by its media type. */
import { createHmac, hash } from 'node:crypto'
import { inputTooLarge } from '../../ports/errors.ts'
import { framePairs } from './form-pairs.ts'
import { frame } from './framing.ts'
import { canonicalizeBytes, jsonBytesMax } from './json/canonical-json.ts'
import { canonicalizeValue } from './json/canonical-value.ts'
import { roomBefore } from './json/cursor.ts'
import { decode } from './json/scalar.ts'
import { frameParts } from './multipart.ts'
import { type FieldOptions, type OnMissing, selectFields } from './select-fields.ts'

/** The parts of a request that can count. */
export interface RequestParts {
  method: string
  /** The path as received, without the query. */
  path: string
  /** The raw text after the question mark; empty when there is none. */
  query: string
  /** The Content-Type header. Its parameters do not count; the boundary is needed to read a multipart body. */
  mediaType: string | undefined
  body: Uint8Array
  /** Looks a request header up by its lower-case name; several lines of a name come joined with ", ". */
  header: (name: string) => string | undefined
}

export type HmacKey = Uint8Array | string

/** Two keys, while rows of both are stored. */
export interface HmacKeys {
  readonly current: HmacKey
  readonly previous: HmacKey
}

export interface FingerprintOptions {
  /**
   * Fields of a JSON body that count, as `customer.id` or `/customer/id`; a path through an array means each element.
   * Default: all. Set it where a body carries more than the request itself. A body that is not JSON counts as a whole, and so does one in
   * which a path leads to nothing: that is reported, once for each path, because the path may be misspelt.
   */
  include?: readonly string[]
  /** With `include`: fields that count as well where a body has them, written in the same way. Default none. */
  includeIfPresent?: readonly string[]
  /**
   * Fields of a JSON body that do not count, written as in `include`. Default none. For example, the time of sending.
   */
  exclude?: readonly string[]
  /** Request headers that count. Default none. Set it where one changes the meaning, such as an API version. */
  headers?: readonly string[]
  /**
   * Key for HMAC-SHA-256 in place of plain SHA-256. Default none. Set it where bodies are few enough to be guessed from
   * a hash in the database. A changed key makes every stored fingerprint differ, so rotate it: with `{ current, previous }` new rows
   * use `current`, and rows of `previous` still compare equal. Leave `previous` out again when the longest retention is over.
   */
  hmac?: HmacKey | HmacKeys
  /** Returns what to hash, in place of all parts and options but `hmac`. Default none. */
  custom?: (request: RequestParts) => string | Uint8Array
}

export type FingerprintPart = 'method' | 'path' | 'query' | 'body' | 'headers'

/** One byte of version, 16 bytes over everything, and 2 bytes for each of `fingerprintParts`: they only name what differs. */
export type Fingerprint = Uint8Array

export const fingerprintParts: readonly FingerprintPart[] = ['method', 'path', 'query', 'body', 'headers']

/** The version of the algorithm below. Its results are stored for days: change the algorithm only together with this number. */
export const currentFingerprintVersion = 2

const wholeBytes = 16
const partBytes = 2

/** Version 1 had more bytes of the same hash for each part. All else is the same, the whole included. */
const older = { version: 1, partBytes: 8 }

export interface FingerprintContext {
  /** Set where one key spans several operations, so that a request to one never equals a request to another. */
  readonly operation?: string | undefined
  readonly onMissing?: OnMissing | undefined
}

export function fingerprintRequest(
  request: RequestParts,
  options: FingerprintOptions = {},
  { operation, onMissing }: FingerprintContext = {},
): Fingerprint {
  if (options.custom !== undefined)
    return assemble({ ...pathOf(operation), body: frame(['custom', options.custom(request)]) }, currentKey(options))
  return assemble(
    {
      method: request.method,
      path: request.path,
      query: request.query === '' ? '' : framePairs(request.query),
      body: frameBody(request, options, onMissing),
      headers: options.headers === undefined ? '' : frameHeaders(request, options.headers),
    },
    currentKey(options),
  )
}

/** The fingerprint of a plain function's input. Throws a TypeError for what JSON cannot hold, `input-too-large` for what is nested too deep. */
export function fingerprintInput(
  input: unknown,
  options: Pick<FingerprintOptions, 'hmac'> = {},
  operation?: string,
): Fingerprint {
  // An integer past 2^53 is fine here: the function sees the same number that is hashed.
  const value = input === undefined ? undefined : canonicalizeValue(input)
  if (value?.kind === 'too-deep') throw inputTooLarge('the input', { max: value.levelsMax, unit: 'levels' })
  const text = value?.text
  return assemble({ ...pathOf(operation), body: frame(['input', text]) }, currentKey(options))
}

function isRotating(hmac: FingerprintOptions['hmac']): hmac is HmacKeys {
  return typeof hmac === 'object' && 'current' in hmac
}

function currentKey({ hmac }: Pick<FingerprintOptions, 'hmac'>): HmacKey | undefined {
  return isRotating(hmac) ? hmac.current : hmac
}

/** The options that fingerprint as before the rotation of the key. Undefined: no rotation is under way. */
export function previousOptions(options: FingerprintOptions): FingerprintOptions | undefined {
  return isRotating(options.hmac) ? { ...options, hmac: options.hmac.previous } : undefined
}

/** The operation's name takes the place of a request's path. */
function pathOf(operation: string | undefined): { path?: Uint8Array } {
  return operation === undefined ? {} : { path: frame(['operation', operation]) }
}

function frameHeaders(request: RequestParts, names: readonly string[]): Uint8Array {
  const sorted = [...new Set(names.map(name => name.toLowerCase()))].sort()
  return frame(sorted.flatMap(name => [name, request.header(name)]))
}

const digestBytes = 32
/** What the whole is made of: the version that it is the same since, and full hashes. Overwritten for each fingerprint: nothing here is asynchronous. */
const joined = Buffer.alloc(1 + fingerprintParts.length * digestBytes, older.version)

/** The whole is made of the parts' full hashes, so that a large body is hashed once. Their fixed length frames them. */
function assemble(parts: { [Part in FingerprintPart]?: Uint8Array | string }, hmac: HmacKey | undefined): Fingerprint {
  writeDigest(parts.method ?? '', hmac, 0)
  writeDigest(parts.path ?? '', hmac, 1)
  writeDigest(parts.query ?? '', hmac, 2)
  writeDigest(parts.body ?? '', hmac, 3)
  writeDigest(parts.headers ?? '', hmac, 4)
  const fingerprint = Buffer.allocUnsafe(1 + wholeBytes + fingerprintParts.length * partBytes)
  fingerprint[0] = currentFingerprintVersion
  fingerprint.write(digest(joined, hmac), 1, wholeBytes, 'latin1')
  for (let i = 0; i < fingerprintParts.length; i++) {
    const from = 1 + i * digestBytes
    const to = 1 + wholeBytes + i * partBytes
    for (let at = 0; at < partBytes; at++) fingerprint[to + at] = joined[from + at] ?? 0
  }
  return fingerprint
}

/** Methods, paths and the empty query recur with every request. */
const knownDigests = new Map<string, Uint8Array>()
const knownMax = 1_000
const knownLengthMax = 256

/** `number`: of the part, in the order of `fingerprintParts`. */
function writeDigest(part: Uint8Array | string, hmac: HmacKey | undefined, number: number): void {
  const to = 1 + number * digestBytes
  if (typeof part !== 'string' || hmac !== undefined || part.length > knownLengthMax) {
    joined.write(digest(part, hmac), to, digestBytes, 'latin1')
    return
  }
  const known = knownDigests.get(part) ?? learnDigest(part)
  for (let at = 0; at < digestBytes; at++) joined[to + at] = known[at] ?? 0
}

function learnDigest(part: string): Uint8Array {
  const made = Buffer.from(digest(part, undefined), 'latin1')
  // Paths that contain ids are as many as the ids.
  if (knownDigests.size >= knownMax) knownDigests.clear()
  knownDigests.set(part, made)
  return made
}

/** One character per byte: a Buffer for each hash costs more than the hash itself. */
function digest(bytes: Uint8Array | string, hmac: HmacKey | undefined): string {
  return hmac === undefined
    ? hash('sha256', bytes, 'binary')
    : createHmac('sha256', hmac).update(bytes).digest('binary')
}

/** The version that made a fingerprint. Only fingerprints of the same version can be compared. */
export function fingerprintVersion(fingerprint: Fingerprint): number {
  return fingerprint[0] ?? 0
}

/**
 * Whether two requests are the same. False for fingerprints of different versions, which means nothing: compare the versions first.
 */
export function sameFingerprint(a: Fingerprint, b: Fingerprint): boolean {
  return sameBytes(a, b, 0, 1 + wholeBytes)
}

/**
 * Which parts differ between two fingerprints of the same version. The media type counts as part of the body. Of 65,536 parts that differ,
 * one is not named: its hash begins with the same bytes.
 */
export function differingParts(a: Fingerprint, b: Fingerprint): FingerprintPart[] {
  const bytes = fingerprintVersion(a) === older.version ? older.partBytes : partBytes
  return fingerprintParts.filter((_, i) => !sameBytes(a, b, 1 + wholeBytes + i * bytes, bytes))
}

/**
 * The fingerprint of a request in the version of a stored one, for a comparison with that one alone. Undefined: the version is unknown here.
 * Where the first bytes of a part agree, the others are taken from the stored one: a request that is the same gets the same bytes.
 */
export function restateFingerprint(fingerprint: Fingerprint, stored: Fingerprint): Fingerprint | undefined {
  const length = 1 + wholeBytes + fingerprintParts.length * older.partBytes
  if (fingerprintVersion(stored) !== older.version || stored.length !== length) return undefined
  if (fingerprintVersion(fingerprint) !== currentFingerprintVersion) return undefined
  const restated = Uint8Array.from(stored)
  restated.set(fingerprint.subarray(1, 1 + wholeBytes), 1)
  for (let i = 0; i < fingerprintParts.length; i++) {
    const from = 1 + wholeBytes + i * partBytes
    restated.set(fingerprint.subarray(from, from + partBytes), 1 + wholeBytes + i * older.partBytes)
  }
  return restated
}

function sameBytes(a: Uint8Array, b: Uint8Array, start: number, length: number): boolean {
  for (let at = start; at < start + length; at++) if (a[at] !== b[at]) return false
  return true
}

/** The first fault of the options, for the check at construction; undefined when there is none. */
export function findFingerprintFault(options: FingerprintOptions): string | undefined {
  const { include, includeIfPresent, exclude, headers, hmac, custom } = options
  const keys = isRotating(hmac) ? [hmac.current, hmac.previous] : [hmac]
  if (keys.some(key => key?.length === 0)) return 'fingerprint.hmac is empty: pass a secret of 32 bytes, or omit it.'
  const others = [include, includeIfPresent, exclude, headers].some(option => option !== undefined)
  if (custom !== undefined && others)
    return 'fingerprint.custom replaces include, includeIfPresent, exclude and headers: pass it alone.'
  if (include?.length === 0) return 'fingerprint.include is empty, so every body would be equal: name a field.'
  if (include === undefined && includeIfPresent !== undefined)
    return 'fingerprint.includeIfPresent requires include: name at least one field there that every body has.'
  if ([...(include ?? []), ...(includeIfPresent ?? []), ...(exclude ?? []), ...(headers ?? [])].includes(''))
    return 'fingerprint contains an empty field name.'
  return undefined
}

/** The type without its parameters, in lower case; empty when there is none. */
export function essenceOf(mediaType: string | undefined): string {
  if (mediaType === undefined || mediaType === 'application/json') return mediaType ?? ''
  return mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** By its essence: RFC 8259, and the suffix of RFC 6839, section 3.1. */
export function isJson(essence: string): boolean {
  return essence === 'application/json' || essence.endsWith('+json')
}

interface BodyParts {
  mediaType: string | undefined
  body: Uint8Array
}

/** Frames the media type, the rule by which the body was read, and the body: no two rules give the same bytes. */
function frameBody({ mediaType, body }: BodyParts, options: FieldOptions, onMissing?: OnMissing): Uint8Array {
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
