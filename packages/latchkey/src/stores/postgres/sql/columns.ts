/**
 * The parameters of a statement for many rows: one array a column, in PostgreSQL's binary format. Nothing has to be quoted, so no
 * value can ever be read as two, and bytes need not become hexadecimal text and back.
 */
import { LatchkeyError } from '../../../ports/errors.ts'

/** What a batch has of each item. */
export interface Column<Item> {
  /** The number of the type in `pg_type`. */
  readonly type: number
  /** Writes one value behind its length. */
  write(writer: BinaryWriter, item: Item): void
}

export function uuids<Item>(of: (item: Item) => string): Column<Item> {
  return { type: 2950, write: (writer, item) => writer.uuid(of(item)) }
}

export function byteas<Item>(of: (item: Item) => Uint8Array): Column<Item> {
  return { type: 17, write: (writer, item) => writer.bytes(of(item)) }
}

export function smallints<Item>(of: (item: Item) => number): Column<Item> {
  return { type: 21, write: (writer, item) => writer.smallint(of(item)) }
}

export function bigints<Item>(of: (item: Item) => bigint): Column<Item> {
  return { type: 20, write: (writer, item) => writer.bigint(of(item)) }
}

export function float8s<Item>(of: (item: Item) => number): Column<Item> {
  return { type: 701, write: (writer, item) => writer.float8(of(item)) }
}

export function texts<Item>(of: (item: Item) => string | null): Column<Item> {
  return { type: 25, write: (writer, item) => writer.text(of(item)) }
}

/** Writes into one buffer, which is used again for the next message. */
export interface BinaryWriter {
  byte(value: number): void
  int16(value: number): void
  int32(value: number): void
  /** Text that ends with a zero, as names do in the protocol. */
  name(text: string): void
  uuid(text: string): void
  bytes(value: Uint8Array): void
  smallint(value: number): void
  bigint(value: bigint): void
  float8(value: number): void
  text(value: string | null): void
  /** Writes the length of what `write` writes before it. */
  withLength(write: () => void, ownBytes: 0 | 4): void
  array<Item>(column: Column<Item>, items: readonly Item[]): void
  /** Starts a message. The one before is overwritten. */
  start(): void
  /** What was written since `start`. */
  written(): Buffer
}

const firstBytes = 16_384
/** A larger buffer is not kept: one batch of large answers must not cost memory for ever. */
const keptBytesMax = 1 << 20

export function binaryWriter(bytes: number = firstBytes): BinaryWriter {
  let buffer = Buffer.allocUnsafeSlow(bytes)
  let end = 0
  let hasNulls = false

  function room(bytes: number): void {
    if (end + bytes <= buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * buffer.length, end + bytes))
    buffer.copy(larger, 0, 0, end)
    buffer = larger
  }
  function int32(value: number): void {
    room(4)
    buffer[end] = value >> 24
    buffer[end + 1] = value >> 16
    buffer[end + 2] = value >> 8
    buffer[end + 3] = value
    end += 4
  }
  const writer: BinaryWriter = {
    byte(value) {
      room(1)
      buffer[end] = value
      end += 1
    },
    int16(value) {
      room(2)
      end = buffer.writeInt16BE(value, end)
    },
    int32,
    name(text) {
      room(utf8BytesMax * text.length + 1)
      end += buffer.write(text, end)
      buffer[end] = 0
      end += 1
    },
    uuid(text) {
      int32(uuidBytes)
      room(uuidBytes)
      if (!writeUuid(buffer, end, text)) throw new LatchkeyError('invariant', `${JSON.stringify(text)} is not a uuid`)
      end += uuidBytes
    },
    bytes(value) {
      int32(value.length)
      room(value.length)
      buffer.set(value, end)
      end += value.length
    },
    smallint(value) {
      int32(2)
      writer.int16(value)
    },
    bigint(value) {
      int32(8)
      room(8)
      end = buffer.writeBigInt64BE(value, end)
    },
    float8(value) {
      int32(8)
      room(8)
      end = buffer.writeDoubleBE(value, end)
    },
    text(value) {
      if (value === null) {
        hasNulls = true
        return int32(nullLength)
      }
      room(4 + utf8BytesMax * value.length)
      const length = buffer.write(value, end + 4)
      int32(length)
      end += length
    },
    withLength(write, ownBytes) {
      const at = end
      int32(0)
      write()
      buffer.writeInt32BE(end - at - 4 + ownBytes, at)
    },
    array({ type, write }, items) {
      // One dimension; whether there are nulls; the type, how many, the number of the first.
      int32(1)
      const nullsAt = end
      int32(0)
      int32(type)
      int32(items.length)
      int32(1)
      hasNulls = false
      for (const item of items) write(writer, item)
      if (hasNulls) buffer.writeInt32BE(1, nullsAt)
    },
    start() {
      end = 0
      if (buffer.length > keptBytesMax) buffer = Buffer.allocUnsafeSlow(firstBytes)
    },
    written: () => buffer.subarray(0, end),
  }
  return writer
}

/** One array as a parameter of its own, for a driver that sends it. */
export function arrayParameter<Item>(column: Column<Item>, items: readonly Item[]): Buffer {
  const writer = binaryWriter(arrayHeadBytes + items.length * (4 + uuidBytes))
  writer.array(column, items)
  return writer.written()
}

/** The value of one item, in the same way. */
export function parameter<Item>(column: Column<Item>, item: Item): Buffer | null {
  const writer = binaryWriter(64)
  column.write(writer, item)
  const value = writer.written()
  return value.readInt32BE() === nullLength ? null : value.subarray(4)
}

const arrayHeadBytes = 20
const nullLength = -1
/** Of one unit of UTF-16. */
const utf8BytesMax = 3
const uuidBytes = 16
/** In either half it makes a value that is not a byte. */
const noDigit = 0x100
/** The value of a hexadecimal digit, by its code. */
const digits = Uint16Array.from({ length: 128 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(value) ? noDigit : value
})

/** By hand: a call of `write` with 'hex' takes three times as long as these steps. */
function writeUuid(buffer: Buffer, start: number, text: string): boolean {
  let from = 0
  for (let at = start; at < start + uuidBytes; at += 1) {
    if (text.charCodeAt(from) === hyphen) from += 1
    const byte = (valueOfDigit(text, from) << 4) | valueOfDigit(text, from + 1)
    if (byte > 0xff) return false
    buffer[at] = byte
    from += 2
  }
  return from === text.length
}

const hyphen = 0x2d
const uuidLength = 36

/** By hand as well: every call asks. */
export function isUuid(text: string): boolean {
  if (text.length !== uuidLength) return false
  for (let at = 0; at < uuidLength; at += 1) {
    const isRight = isHyphenAt(at) ? text.charCodeAt(at) === hyphen : valueOfDigit(text, at) !== noDigit
    if (!isRight) return false
  }
  return true
}

/** As the server writes it: in lower case. */
export function isWrittenUuid(text: string): boolean {
  if (!isUuid(text)) return false
  for (let at = 0; at < uuidLength; at += 1) if (isUpperCase(text.charCodeAt(at))) return false
  return true
}

function isUpperCase(code: number): boolean {
  return code >= 0x41 && code <= 0x5a
}

function isHyphenAt(at: number): boolean {
  return at === 8 || at === 13 || at === 18 || at === 23
}

function valueOfDigit(text: string, index: number): number {
  return digits[text.charCodeAt(index)] ?? noDigit
}
