import { makeRoom, stopAtLoss, stopAtSyntax } from './cursor.ts'
import type { JsonCursor } from './cursor.ts'
import { type Decimal, decimal, scanDecimal, spelledBytesMax, writeDecimal } from './decimal.ts'

// A double keeps every decimal number of so many digits, and spells it with the same digits.
const safeDigits = 15
// Where it does: from 10^-307, above the numbers that have fewer digits than that, to below 10^308.
const safePointMin = -306
const safePointMax = 308
// No double needs more to be told from every other.
const digitsMax = 17

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
 * Writes the number if a double keeps its digits, that is, if the double is spelled with them: then it stands for this number
 * and for no other. The spelling of ECMAScript is that of RFC 8785, section 3.2.2.3.
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
