/** Decimal numbers as JSON spells them, digit by digit: no string is created, and nothing is rounded. */

/** 0.d1d2…dn times ten to the power of `point`, where d1 and dn are not 0. Without digits it is 0. */
export interface Decimal {
  negative: boolean
  /** The first `digitsStored` of them. */
  readonly digits: Uint8Array
  count: number
  point: number
  /** Spelled without a fraction and without an exponent. */
  isInteger: boolean
  /** While digits are read: zeros since the last digit that was not 0, and zeros before the first such digit. */
  zeros: number
  leadingZeros: number
}

/** More than a double can distinguish; `count` still counts the rest. */
const digitsStored = 20

/** The longest spelling is `-0.00000` and 17 digits. */
export const spelledBytesMax = 32

export function decimal(): Decimal {
  const digits = new Uint8Array(digitsStored)
  return { negative: false, digits, count: 0, point: 0, isInteger: true, zeros: 0, leadingZeros: 0 }
}

const zero = 0x30
const plus = 0x2b
const minus = 0x2d
const dot = 0x2e
const lowerE = 0x65

/** Reads the number at `start` and returns where it ends, or `start` where there is none. The bytes must not be followed by a digit. */
export function scanDecimal(bytes: Uint8Array, start: number, into: Decimal): number {
  into.negative = bytes[start] === minus
  into.count = 0
  into.zeros = 0
  const whole = into.negative ? start + 1 : start
  let at = scanDigits(bytes, whole, into)
  // JSON has no zeros in front of other digits.
  if (at === whole || (bytes[whole] === zero && at > whole + 1)) return start
  into.point = into.count === 0 ? 0 : into.count + into.zeros
  const wholeEnd = at
  if (bytes[at] === dot) {
    at = scanFraction(bytes, at + 1, into)
    if (at === wholeEnd + 1) return start
  }
  if (((bytes[at] ?? 0) | 0x20) === lowerE) {
    const exponentEnd = scanExponent(bytes, at + 1, into)
    if (exponentEnd === at + 1) return start
    at = exponentEnd
  }
  into.isInteger = at === wholeEnd
  return at
}

/** Returns where the digits end. */
function scanDigits(bytes: Uint8Array, start: number, into: Decimal): number {
  const { digits } = into
  let { count, zeros } = into
  let at = start
  for (; ; at++) {
    const digit = (bytes[at] ?? 0) - zero
    if (digit < 0 || digit > 9) break
    if (digit === 0) {
      zeros++
      continue
    }
    if (count === 0) into.leadingZeros = zeros
    else for (; zeros > 0; zeros--) digits[count++] = 0
    zeros = 0
    digits[count++] = digit
  }
  into.count = count
  into.zeros = zeros
  return at
}

function scanFraction(bytes: Uint8Array, start: number, into: Decimal): number {
  const begins = into.count === 0
  if (begins) into.zeros = 0
  const end = scanDigits(bytes, start, into)
  if (begins && into.count > 0) into.point = -into.leadingZeros
  return end
}

/** Larger than every exponent that matters, even one that a long row of zeros compensates. */
const exponentMax = 1_000_000_000

function scanExponent(bytes: Uint8Array, start: number, into: Decimal): number {
  const signed = bytes[start] === plus || bytes[start] === minus
  const first = signed ? start + 1 : start
  let exponent = 0
  let at = first
  for (; ; at++) {
    const digit = (bytes[at] ?? 0) - zero
    if (digit < 0 || digit > 9) break
    exponent = Math.min(exponentMax, exponent * 10 + digit)
  }
  into.point += bytes[start] === minus ? -exponent : exponent
  return at === first ? start : at
}

/** Writes the number as ECMAScript's Number::toString spells it, as RFC 8785, section 3.2.2.3, asks. Returns where it ends. */
export function writeDecimal(number: Decimal, out: Uint8Array, start: number): number {
  let at = start
  if (number.count === 0) {
    out[at++] = zero
    return at
  }
  if (number.negative) out[at++] = minus
  if (number.point > 21 || number.point <= -6) return writeExponential(number, out, at)
  if (number.point <= 0) {
    out[at++] = zero
    out[at++] = dot
    for (let i = number.point; i < 0; i++) out[at++] = zero
  }
  for (let i = 0; i < number.count || i < number.point; i++) {
    if (i > 0 && i === number.point) out[at++] = dot
    out[at++] = zero + (i < number.count ? (number.digits[i] ?? 0) : 0)
  }
  return at
}

function writeExponential({ digits, count, point }: Decimal, out: Uint8Array, start: number): number {
  let at = start
  for (let i = 0; i < count; i++) {
    if (i === 1) out[at++] = dot
    out[at++] = zero + (digits[i] ?? 0)
  }
  const exponent = Math.abs(point - 1)
  out[at++] = lowerE
  out[at++] = point > 0 ? plus : minus
  if (exponent >= 100) out[at++] = zero + Math.floor(exponent / 100)
  if (exponent >= 10) out[at++] = zero + (Math.floor(exponent / 10) % 10)
  out[at++] = zero + (exponent % 10)
  return at
}
