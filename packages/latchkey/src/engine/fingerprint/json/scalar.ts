/** Strings and numbers of a JSON text, read and written in the spelling of RFC 8785. */
import { makeRoom, stopAtLoss, stopAtSyntax } from './cursor.ts'
import type { JsonCursor } from './cursor.ts'
import { type Decimal, decimal, scanDecimal, spelledBytesMax, writeDecimal } from './decimal.ts'

// With the flag u, a surrogate that is half of a pair is part of a code point and does not match.
const loneSurrogate = /\p{Surrogate}/u

export function hasLoneSurrogate(text: string): boolean {
  return loneSurrogate.test(text)
}

export function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

const quote = 0x22
const backslash = 0x5c

/** 1: stands for itself. One table access instead of three comparisons, for the most common bytes. */
const ordinary = new Uint8Array(256).fill(1, 0x20)
ordinary[quote] = 0
ordinary[backslash] = 0

/** The two-byte escapes that RFC 8785, section 3.2.2.2, retains: what the second byte means, and the reverse. */
const meaning = new Uint8Array(256)
const shortEscape = new Uint8Array(128)
for (const [second, point] of Object.entries({ '"': quote, '\\': backslash, b: 8, f: 12, n: 10, r: 13, t: 9 })) {
  meaning[second.charCodeAt(0)] = point
  shortEscape[point] = second.charCodeAt(0)
}
const slash = 0x2f

/**
 * Whether four bytes are all ordinary, in one calculation: `(x - n) & ~x` has the top bit of a byte set where that byte is below n.
 * A borrow may reach a byte above one that is not ordinary; the bytes are then checked one by one anyway.
 */
export function areOrdinary(word: number): boolean {
  const quotes = word ^ 0x22222222
  const backslashes = word ^ 0x5c5c5c5c
  const below =
    ((word - 0x20202020) & ~word) | ((quotes - 0x01010101) & ~quotes) | ((backslashes - 0x01010101) & ~backslashes)
  return (below & 0x80808080) === 0
}

export function readString(cursor: JsonCursor): boolean {
  const { source, sourceWords, out, outWords } = cursor
  let at = cursor.at + 1
  let length = cursor.length
  out[length++] = quote
  for (;;) {
    // The text is followed by a zero, which is not ordinary.
    let word = sourceWords.getInt32(at, true)
    while (areOrdinary(word)) {
      outWords.setInt32(length, word, true)
      length += 4
      at += 4
      word = sourceWords.getInt32(at, true)
    }
    let byte = source[at++] ?? 0
    while (ordinary[byte] === 1) {
      out[length++] = byte
      byte = source[at++] ?? 0
    }
    if (byte === quote) break
    if (byte !== backslash) return stopAtSyntax(cursor)
    const escaped = source[at++] ?? 0
    if ((meaning[escaped] ?? 0) !== 0) {
      out[length++] = backslash
      out[length++] = escaped
    } else if (escaped === slash) {
      out[length++] = slash
    } else {
      cursor.at = at
      cursor.length = length
      if (escaped !== 0x75) return stopAtSyntax(cursor)
      if (!readUnicodeEscape(cursor)) return false
      at = cursor.at
      length = cursor.length
    }
  }
  out[length++] = quote
  cursor.at = at
  cursor.length = length
  return true
}

/** Continues after `\u`. What is written is never longer than the escape was. */
function readUnicodeEscape(cursor: JsonCursor): boolean {
  const { source } = cursor
  const unit = hexUnit(source, cursor.at)
  if (unit === noUnit) return stopAtSyntax(cursor)
  cursor.at += 4
  if (unit < 0xd800 || unit > 0xdfff) return writeCharacter(cursor, unit)
  const follows = source[cursor.at] === backslash && source[cursor.at + 1] === 0x75
  const low = follows ? hexUnit(source, cursor.at + 2) : noUnit
  if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff) return stopAtLoss(cursor, 'lone-surrogate')
  cursor.at += 6
  return writeCharacter(cursor, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
}

const noUnit = -1

/** The code unit of four hexadecimal digits, or `noUnit`. Never reads past the zero that follows the text. */
function hexUnit(bytes: Uint8Array, at: number): number {
  let unit = 0
  for (let i = at; i < at + 4; i++) {
    const digit = hexDigit(bytes[i] ?? 0)
    if (digit === noDigit) return noUnit
    unit = unit * 16 + digit
  }
  return unit
}

/** As RFC 8785, section 3.2.2.2, spells it: an escape only where JSON needs one, everything else as UTF-8. */
function writeCharacter(cursor: JsonCursor, point: number): true {
  const { out } = cursor
  if (point < 0x20 || point === quote || point === backslash) return writeEscape(cursor, point)
  if (point < 0x80) {
    out[cursor.length++] = point
    return true
  }
  if (point < 0x800) out[cursor.length++] = 0xc0 | (point >> 6)
  else if (point < 0x10000) out[cursor.length++] = 0xe0 | (point >> 12)
  else {
    out[cursor.length++] = 0xf0 | (point >> 18)
    out[cursor.length++] = 0x80 | ((point >> 12) & 0x3f)
  }
  if (point >= 0x800) out[cursor.length++] = 0x80 | ((point >> 6) & 0x3f)
  out[cursor.length++] = 0x80 | (point & 0x3f)
  return true
}

function writeEscape(cursor: JsonCursor, point: number): true {
  const { out } = cursor
  out[cursor.length++] = backslash
  const short = shortEscape[point] ?? 0
  if (short !== 0) {
    out[cursor.length++] = short
    return true
  }
  out[cursor.length++] = 0x75
  out[cursor.length++] = 0x30
  out[cursor.length++] = 0x30
  out[cursor.length++] = 0x30 | (point >> 4)
  out[cursor.length++] = '0123456789abcdef'.charCodeAt(point & 0xf)
  return true
}

/** What an escape of a canonical text means. It starts at `at`. */
export function escapedUnit(out: Uint8Array, at: number): number {
  const second = out[at + 1] ?? 0
  return second === 0x75 ? hexUnit(out, at + 2) : (meaning[second] ?? 0)
}

export const noDigit = -1

/** What a byte means as a hexadecimal digit, or `noDigit`. */
export function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : noDigit
}

// A double holds every decimal number of this many digits exactly enough to spell it with the same digits,
const safeDigits = 15
// from 10^-307 (smaller doubles have fewer digits) to below 10^308.
const safePointMin = -306
const safePointMax = 308
// No double needs more digits to differ from every other.
const digitsMax = 17

const minus = 0x2d
const point = 0x2e
const zero = 0x30
const nine = 0x39

export function readNumber(cursor: JsonCursor): boolean {
  return readShortNumber(cursor) || readAnyNumber(cursor)
}

/**
 * Most numbers are already written as RFC 8785 spells them: 15, 19.99, -3, 0.19. They are copied without creating a string.
 */
function readShortNumber(cursor: JsonCursor): boolean {
  const { source, out, at: start } = cursor
  let at = start
  let byte = source[at] ?? 0
  if (byte === minus) byte = source[++at] ?? 0
  if (byte < zero || byte > nine) return false
  // Numbers that begin with 0, such as -0 and 0.0000001, may need another spelling; 0.19 does not.
  if (byte === zero && !beginsFraction(cursor, at)) return at === start && readZero(cursor)
  const shift = cursor.length - start
  if (at > start) out[start + shift] = minus
  let hasPoint = false
  while ((byte >= zero && byte <= nine) || (byte === point && !hasPoint)) {
    if (byte === point) hasPoint = true
    out[at + shift] = byte
    byte = source[++at] ?? 0
  }
  // RFC 8785 drops a zero at the end of a fraction; a point there is not JSON.
  if (at - start > safeDigits || isNumberByte(byte) || (hasPoint && (source[at - 1] ?? 0) <= zero)) return false
  cursor.at = at
  cursor.length = at + shift
  return true
}

function beginsFraction({ source }: JsonCursor, at: number): boolean {
  const first = source[at + 2] ?? 0
  return source[at + 1] === point && first > zero && first <= nine
}

function readZero(cursor: JsonCursor): boolean {
  if (isNumberByte(cursor.source[cursor.at + 1] ?? 0)) return false
  cursor.at++
  cursor.out[cursor.length++] = zero
  return true
}

function isNumberByte(byte: number): boolean {
  return (byte >= zero && byte <= nine) || byte === minus || byte === 0x2b || byte === point || (byte | 0x20) === 0x65
}

const read: Decimal = decimal()

function readAnyNumber(cursor: JsonCursor): boolean {
  const start = cursor.at
  const end = scanDecimal(cursor.source, start, read)
  if (end === start || isNumberByte(cursor.source[end] ?? 0)) return stopAtSyntax(cursor)
  cursor.at = end
  makeRoom(cursor, spelledBytesMax)
  const isSafe = read.point >= safePointMin && read.point <= safePointMax
  if (read.count === 0 || (read.count <= safeDigits && isSafe)) {
    cursor.length = writeDecimal(read, cursor.out, cursor.length)
    return true
  }
  const value = Number(cursor.source.toString('latin1', start, end))
  if (!Number.isFinite(value) || value === 0) return stopAtLoss(cursor, 'number-range')
  if (read.count <= digitsMax && keepsDigits(cursor, value)) return true
  return stopAtLoss(cursor, read.isInteger ? 'integer-range' : 'precision')
}

/**
 * Writes the number if the nearest double is spelled with the same digits: then the double stands for this number and for no
 * other. RFC 8785, section 3.2.2.3, takes over ECMAScript's spelling.
 */
function keepsDigits(cursor: JsonCursor, value: number): boolean {
  const { out, length } = cursor
  const spelling = String(value)
  const end = writeDecimal(read, out, length)
  if (end - length !== spelling.length) return false
  for (let i = 0; i < spelling.length; i++) if (out[length + i] !== spelling.charCodeAt(i)) return false
  cursor.length = end
  return true
}
