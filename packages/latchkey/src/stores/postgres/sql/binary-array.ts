/**
 * Arrays as PostgreSQL's binary protocol has them. `pg` sends a Buffer as it is: nothing has to be quoted, so no value can
 * ever be read as two, and bytes need not become hexadecimal text and back.
 */
import { LatchkeyError } from '../../../ports/errors.ts'

/** Fixed numbers of PostgreSQL's own types. */
const oid = { bytea: 17, int2: 21, text: 25, float8: 701, uuid: 2950 }

export function uuidArray(values: readonly string[]): Buffer {
  const array = arrayHead(oid.uuid, values.length, values.length * (4 + uuidBytes))
  let at = headerBytes
  for (const text of values) {
    at = array.writeInt32BE(uuidBytes, at)
    if (!writeUuid(array, at, text)) throw new LatchkeyError('invariant', `${JSON.stringify(text)} is not a uuid`)
    at += uuidBytes
  }
  return array
}

/** By hand: a call of `write` with 'hex' takes three times as long as these steps. */
function writeUuid(array: Buffer, start: number, text: string): boolean {
  let from = 0
  for (let at = start; at < start + uuidBytes; at += 1) {
    if (text[from] === '-') from += 1
    const byte = (valueOfDigit(text, from) << 4) | valueOfDigit(text, from + 1)
    if (byte > 0xff) return false
    array[at] = byte
    from += 2
  }
  return from === text.length
}

function valueOfDigit(text: string, index: number): number {
  return digits[text.charCodeAt(index)] ?? noDigit
}

export function byteaArray(values: readonly Uint8Array[]): Buffer {
  return arrayOf(oid.bytea, values)
}

export function textArray(values: readonly (string | null)[]): Buffer {
  const elements: (Uint8Array | null)[] = []
  // The scope and the operation of a batch are often the same in all of its rows.
  let last: { readonly text: string; readonly bytes: Uint8Array } | undefined
  for (const text of values) {
    if (text !== null && last?.text !== text) last = { text, bytes: Buffer.from(text) }
    elements.push(text === null || last === undefined ? null : last.bytes)
  }
  return arrayOf(oid.text, elements)
}

export function smallintArray(values: readonly number[]): Buffer {
  const array = arrayHead(oid.int2, values.length, values.length * 6)
  let at = headerBytes
  for (const value of values) at = array.writeInt16BE(value, array.writeInt32BE(2, at))
  return array
}

export function float8Array(values: readonly number[]): Buffer {
  const array = arrayHead(oid.float8, values.length, values.length * 12)
  let at = headerBytes
  for (const value of values) at = array.writeDoubleBE(value, array.writeInt32BE(8, at))
  return array
}

const uuidBytes = 16
/** Makes a value that is not a byte. */
const noDigit = 0x10
/** The value of a hexadecimal digit, by its code. */
const digits = Uint8Array.from({ length: 128 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(value) ? noDigit : value
})
const headerBytes = 20
const hasNullsAt = 4
const nullLength = -1

/** One dimension, counted from one. */
function arrayHead(type: number, length: number, elementBytes: number): Buffer {
  const array = Buffer.allocUnsafe(headerBytes + elementBytes)
  array.writeInt32BE(1, 0)
  array.writeInt32BE(0, hasNullsAt)
  array.writeInt32BE(type, 8)
  array.writeInt32BE(length, 12)
  array.writeInt32BE(1, 16)
  return array
}

function arrayOf(type: number, elements: readonly (Uint8Array | null)[]): Buffer {
  let size = 0
  for (const element of elements) size += 4 + (element?.length ?? 0)
  const array = arrayHead(type, elements.length, size)
  let at = headerBytes
  for (const element of elements) {
    at = array.writeInt32BE(element?.length ?? nullLength, at)
    if (element === null) {
      array.writeInt32BE(1, hasNullsAt)
      continue
    }
    array.set(element, at)
    at += element.length
  }
  return array
}
