import { append, stopAtLoss, stopAtSyntax } from './json-cursor.ts'
import type { JsonCursor } from './json-cursor.ts'

const numberSyntax = /^-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

// A double keeps every decimal number of so many digits, and spells it with the same digits.
const safeDigits = 15
const minus = 0x2d
const point = 0x2e
const zero = 0x30
const nine = 0x39

export function readNumber(cursor: JsonCursor): boolean {
  return readShortNumber(cursor) || readAnyNumber(cursor)
}

/**
 * Most numbers of most bodies stand as RFC 8785 spells them: 15, 19.99, -3, 0.19. They are copied without making a string
 * of them.
 */
function readShortNumber(cursor: JsonCursor): boolean {
  const { source, out, at: start } = cursor
  let at = start
  let byte = source[at] ?? 0
  if (byte === minus) byte = source[++at] ?? 0
  if (byte < zero || byte > nine) return false
  // 0 and what begins with it, such as -0 and 0.0000001, may need another spelling; 0.19 does not.
  if (byte === zero && !beginsFraction(cursor, at)) return at === start && readZero(cursor)
  const shift = cursor.length - start
  if (at > start) out[start + shift] = minus
  let hasPoint = false
  while ((byte >= zero && byte <= nine) || (byte === point && !hasPoint)) {
    if (byte === point) hasPoint = true
    out[at + shift] = byte
    byte = source[++at] ?? 0
  }
  // A zero at the end of a fraction is dropped by RFC 8785; a point there is not JSON.
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

function readAnyNumber(cursor: JsonCursor): boolean {
  const { source, at: start } = cursor
  let end = start
  while (isNumberByte(source[end] ?? 0)) end++
  const text = Buffer.from(source.buffer, source.byteOffset + start, end - start).toString('latin1')
  const match = numberSyntax.exec(text)
  if (match === null) return stopAtSyntax(cursor)
  cursor.at = end
  const value = Number(text)
  if (!Number.isFinite(value)) return stopAtLoss(cursor, 'number-range')
  // The spelling of ECMAScript is that of RFC 8785, section 3.2.2.3; -0 becomes 0 there as well.
  const canonical = String(value)
  if (canonical === text || sameDecimal(text, canonical)) return append(cursor, Buffer.from(canonical, 'latin1'))
  if (value === 0) return stopAtLoss(cursor, 'number-range')
  return stopAtLoss(cursor, match[1] === undefined && match[2] === undefined ? 'integer-range' : 'precision')
}

/** Whether two spellings mean the same decimal number. Then the double stands for this text and for no other number. */
function sameDecimal(a: string, b: string): boolean {
  const left = toDecimal(a)
  const right = toDecimal(b)
  return left.digits === right.digits && (left.digits === '' || left.exponent === right.exponent)
}

/**
 * The digits without zeros at either end, times ten to the exponent. Rounding never loses a sign, save that of zero.
 */
function toDecimal(text: string): { digits: string; exponent: number } {
  const [mantissa = '', exponent = '0'] = text.replace(/^-/, '').toLowerCase().split('e', 2)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = (whole + fraction).replace(/^0+/, '')
  const digits = trimZerosAtEnd(all)
  return { digits, exponent: Number(exponent) - fraction.length + (all.length - digits.length) }
}

// A loop, because /0+$/ takes quadratic time on a run of zeros that something follows.
function trimZerosAtEnd(digits: string): string {
  let end = digits.length
  while (end > 0 && digits.charCodeAt(end - 1) === zero) end--
  return digits.slice(0, end)
}
