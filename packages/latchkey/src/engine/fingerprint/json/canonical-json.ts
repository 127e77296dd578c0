/**
 * Canonical JSON. This is not a library because the libraries measured were 2 to 4 times slower, and because they parse first and so lose what a
 * fingerprint must keep apart: duplicate names, digits that a double drops, lone surrogates.
 */
import { isUtf8 } from 'node:buffer'
import { nextByte, openCursor, stopAtLoss, stopAtSyntax } from './cursor.ts'
import type { JsonCursor, JsonStop } from './cursor.ts'
import { closeObject, lastMarkAscends, openObject, pushMark, putInOrder } from './member-order.ts'
import { decode, hasLoneSurrogate, readNumber, readString } from './scalar.ts'
import { sortMembers } from './sort-marks.ts'

export interface JsonLimits {
  /**
   * Deepest nesting of arrays and objects. Default 256: no real body comes near it, and the stack holds ten times that.
   */
  depthMax?: number
  /** Longest text in bytes. Default 256 KiB. */
  bytesMax?: number
}

/** `bytes` has `roomBefore` free bytes before it in its buffer; both are valid until the next text is read. */
export type CanonicalBytes = { kind: 'canonical'; bytes: Uint8Array } | JsonStop
export type CanonicalJson = { kind: 'canonical'; text: string } | JsonStop

export const jsonBytesMax: number = 256 * 1024
export const jsonDepthMax = 256

/** RFC 8785 from a text to a text. See `canonicalizeBytes`. */
export function canonicalizeJson(json: string | Uint8Array, limits: JsonLimits = {}): CanonicalJson {
  // Encoding would silently turn a lone surrogate into U+FFFD.
  if (typeof json === 'string' && hasLoneSurrogate(json)) return { kind: 'lossy', reason: 'lone-surrogate' }
  const result = canonicalizeBytes(typeof json === 'string' ? Buffer.from(json) : json, limits)
  return result.kind === 'canonical' ? { kind: 'canonical', text: decode(result.bytes) } : result
}

/**
 * RFC 8785, directly from the text in one pass. JSON.parse would hide what has to be noticed: a duplicate name, digits that a
 * double drops, a lone surrogate. A canonical result has lost nothing but white space, the order of names, the spelling of numbers and
 * strings, and the sign of zero.
 */
export function canonicalizeBytes(json: Uint8Array, limits: JsonLimits = {}): CanonicalBytes {
  if (json.length > (limits.bytesMax ?? jsonBytesMax)) return { kind: 'lossy', reason: 'size' }
  // A lenient decoder would map every broken sequence to U+FFFD and make different bodies equal.
  if (!isUtf8(json)) return { kind: 'invalid', reason: 'encoding' }
  const cursor = openCursor(json, limits.depthMax ?? jsonDepthMax)
  if (readValue(cursor, 0)) {
    nextByte(cursor)
    if (cursor.at < json.length) stopAtSyntax(cursor)
  }
  if (cursor.stop !== undefined) return cursor.stop
  putInOrder(cursor)
  return { kind: 'canonical', bytes: cursor.out.subarray(cursor.start, cursor.length) }
}

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

const words = { true: Buffer.from('true'), false: Buffer.from('false'), null: Buffer.from('null') }

function readValue(cursor: JsonCursor, depth: number): boolean {
  switch (nextByte(cursor)) {
    case quote:
      return readString(cursor)
    case openBrace:
      return depth < cursor.depthMax ? readObject(cursor, depth + 1) : stopAtLoss(cursor, 'depth')
    case openBracket:
      return depth < cursor.depthMax ? readArray(cursor, depth + 1) : stopAtLoss(cursor, 'depth')
    case 0x74:
      return readWord(cursor, words.true)
    case 0x66:
      return readWord(cursor, words.false)
    case 0x6e:
      return readWord(cursor, words.null)
    default:
      return readNumber(cursor)
  }
}

function readWord(cursor: JsonCursor, word: Uint8Array): boolean {
  // By index: iterating with for-of took five times as long.
  for (let i = 0; i < word.length; i++) {
    const byte = word[i] ?? 0
    if (cursor.source[cursor.at] !== byte) return stopAtSyntax(cursor)
    copyByte(cursor, byte)
  }
  return true
}

/** Copies a byte that the canonical text has as well. */
function copyByte(cursor: JsonCursor, byte: number): void {
  cursor.at++
  cursor.out[cursor.length++] = byte
}

function readArray(cursor: JsonCursor, depth: number): boolean {
  copyByte(cursor, openBracket)
  if (nextByte(cursor) === closeBracket) {
    copyByte(cursor, closeBracket)
    return true
  }
  for (;;) {
    if (!readValue(cursor, depth)) return false
    const byte = nextByte(cursor)
    if (byte !== comma && byte !== closeBracket) return stopAtSyntax(cursor)
    copyByte(cursor, byte)
    if (byte === closeBracket) return true
  }
}

function readObject(cursor: JsonCursor, depth: number): boolean {
  copyByte(cursor, openBrace)
  if (nextByte(cursor) === closeBrace) {
    copyByte(cursor, closeBrace)
    return true
  }
  const firstMark = cursor.marksLength
  const object = openObject(cursor)
  let sorted = true
  for (;;) {
    if (!readMember(cursor, depth)) return false
    if (sorted && !lastMarkAscends(cursor, firstMark)) sorted = false
    const byte = nextByte(cursor)
    if (byte === closeBrace) break
    if (byte !== comma) return stopAtSyntax(cursor)
    copyByte(cursor, comma)
  }
  const firstMember = sorted ? undefined : cursor.ordersLength
  if (!sorted && !sortMembers(cursor, firstMark)) return stopAtLoss(cursor, 'duplicate-key')
  closeObject(cursor, object, firstMember)
  cursor.marksLength = firstMark
  copyByte(cursor, closeBrace)
  return true
}

function readMember(cursor: JsonCursor, depth: number): boolean {
  if (nextByte(cursor) !== quote) return stopAtSyntax(cursor)
  const start = cursor.length
  const firstObject = cursor.objectsLength
  if (!readString(cursor)) return false
  if (nextByte(cursor) !== colon) return stopAtSyntax(cursor)
  copyByte(cursor, colon)
  if (!readValue(cursor, depth)) return false
  pushMark(cursor, start, firstObject)
  return true
}
