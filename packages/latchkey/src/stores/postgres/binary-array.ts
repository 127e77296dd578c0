/**
 * Arrays as PostgreSQL's binary protocol has them. `pg` sends a Buffer as it is: nothing has to be quoted, so no value can
 * ever be read as two, and bytes need not become hexadecimal text and back.
 */
import { LatchkeyError } from '../../ports/errors.ts'

/** Fixed numbers of PostgreSQL's own types. */
const oid = { bytea: 17, int2: 21, text: 25, float8: 701, uuid: 2950 }

export function uuidArray(values: readonly string[]): Buffer {
  return arrayOf(oid.uuid, values.map(uuidBytes))
}

export function byteaArray(values: readonly Uint8Array[]): Buffer {
  return arrayOf(oid.bytea, values)
}

export function textArray(values: readonly (string | null)[]): Buffer {
  return arrayOf(
    oid.text,
    values.map(value => (value === null ? null : Buffer.from(value))),
  )
}

export function smallintArray(values: readonly number[]): Buffer {
  return arrayOf(
    oid.int2,
    values.map(value => {
      const bytes = Buffer.allocUnsafe(2)
      bytes.writeInt16BE(value)
      return bytes
    }),
  )
}

export function float8Array(values: readonly number[]): Buffer {
  return arrayOf(
    oid.float8,
    values.map(value => {
      const bytes = Buffer.allocUnsafe(8)
      bytes.writeDoubleBE(value)
      return bytes
    }),
  )
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isUuid(text: string): boolean {
  return uuid.test(text)
}

function uuidBytes(text: string): Buffer {
  const bytes = Buffer.from(text.replaceAll('-', ''), 'hex')
  if (bytes.length !== 16) throw new LatchkeyError('invariant', `${JSON.stringify(text)} is no uuid`)
  return bytes
}

const headerBytes = 20
const nullLength = -1

/** One dimension, counted from one. */
function arrayOf(type: number, elements: readonly (Uint8Array | null)[]): Buffer {
  const size = elements.reduce((sum, element) => sum + 4 + (element?.length ?? 0), headerBytes)
  const array = Buffer.allocUnsafe(size)
  array.writeInt32BE(1, 0)
  array.writeInt32BE(elements.includes(null) ? 1 : 0, 4)
  array.writeInt32BE(type, 8)
  array.writeInt32BE(elements.length, 12)
  array.writeInt32BE(1, 16)
  let at = headerBytes
  for (const element of elements) {
    at = array.writeInt32BE(element?.length ?? nullLength, at)
    if (element === null) continue
    array.set(element, at)
    at += element.length
  }
  return array
}
