/**
 * The parameters of a statement for many rows: one array a column, in PostgreSQL's binary format. Nothing has to be quoted, so no
 * value can ever be read as two, and bytes need not become hexadecimal text and back.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { Claim } from '../../../ports/store.ts'

/** What a batch has of each item. */
export interface Column<Item> {
  /** The number of the type in `pg_type`. */
  readonly type: number
  /** Writes one value behind its length. */
  write(writer: BinaryWriter, item: Item): void
  /** The same value, for a driver that writes it itself. */
  of(item: Item): PlainValue
}

export type PlainValue = string | number | bigint | Uint8Array | null

export function uuids<Item>(of: (item: Item) => string): Column<Item> {
  return { type: 2950, write: (writer, item) => writer.uuid(of(item)), of }
}

export function byteas<Item>(of: (item: Item) => Uint8Array): Column<Item> {
  return { type: 17, write: (writer, item) => writer.bytes(of(item)), of }
}

export function smallints<Item>(of: (item: Item) => number): Column<Item> {
  return { type: 21, write: (writer, item) => writer.smallint(of(item)), of }
}

export function bigints<Item>(of: (item: Item) => bigint): Column<Item> {
  return { type: 20, write: (writer, item) => writer.bigint(of(item)), of }
}

export function float8s<Item>(of: (item: Item) => number): Column<Item> {
  return { type: 701, write: (writer, item) => writer.float8(of(item)), of }
}

export function texts<Item>(of: (item: Item) => string | null): Column<Item> {
  return { type: 25, write: (writer, item) => writer.text(of(item)), of }
}

/** The array of one column, without its length. */
export function writeArray<Item>(writer: BinaryWriter, { type, write }: Column<Item>, items: readonly Item[]): void {
  // One dimension; whether there are nulls; the type, how many, the number of the first.
  writer.int32(1)
  const nullsAt = writer.later()
  writer.int32(type)
  writer.int32(items.length)
  writer.int32(1)
  writer.hasNulls = false
  for (const item of items) write(writer, item)
  if (writer.hasNulls) writer.int32At(nullsAt, 1)
}

/** One array as a parameter of its own, for a driver that sends it. */
export function arrayParameter<Item>(column: Column<Item>, items: readonly Item[]): Buffer {
  const writer = new BinaryWriter(arrayHeadBytes + items.length * (4 + uuidBytes))
  writeArray(writer, column, items)
  return writer.written()
}

/** The value of one item, in the same way. */
export function parameter<Item>(column: Column<Item>, item: Item): Buffer | null {
  const writer = new BinaryWriter(valueBytes)
  column.write(writer, item)
  const value = writer.written()
  return value.readInt32BE() === nullLength ? null : value.subarray(4)
}

const arrayHeadBytes = 20
/** More than most values need. */
const valueBytes = 64

/**
 * A batch takes only ids as the server writes them: it would refuse all of the batch for what is no uuid, and what is written in another
 * way would not be found again among the rows that it returns.
 */
export function areUuids({ id, claimId }: Pick<Claim, 'id' | 'claimId'>): boolean {
  return isWrittenUuid(id) && isWrittenUuid(claimId)
}

/**
 * What a batch sends, by identity. The functions lock the rows in the order of their arrays, so every process must have the same one. Of
 * ids that are written as the server writes them, the order of the text is the order of the bytes.
 */
export function inOrder<Item>(items: readonly Item[], idOf: (item: Item) => string): readonly Item[] {
  return items.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
}

/** PostgreSQL's text cannot hold U+0000. These columns are for people; what must be exact is hashed or stored as bytes. */
export function readable(text: string): string {
  return text.replaceAll('\0', '\uFFFD')
}

const firstBytes = 16_384
/** A larger buffer is not kept: one batch of large answers must not cost memory for ever. */
const keptBytesMax = 1 << 20
/** Of one unit of UTF-16. */
const utf8BytesMax = 3
const nullLength = -1

/**
 * Values of the binary protocol, in one buffer that is used again for the next message. A class, because every request makes dozens of
 * calls to it, and each changes its state.
 */
export class BinaryWriter {
  private buffer: Buffer
  private end = 0
  /** A null was written since it was last cleared. */
  hasNulls = false

  constructor(bytes: number = firstBytes) {
    this.buffer = Buffer.allocUnsafeSlow(bytes)
  }

  /** Starts a message. The one before is overwritten. */
  start(): void {
    this.end = 0
    if (this.buffer.length > keptBytesMax) this.buffer = Buffer.allocUnsafeSlow(firstBytes)
  }

  /** What was written since `start`. */
  written(): Buffer {
    return this.buffer.subarray(0, this.end)
  }

  byte(value: number): void {
    this.room(1)
    this.buffer[this.end] = value
    this.end += 1
  }

  int16(value: number): void {
    this.room(2)
    this.end = this.buffer.writeInt16BE(value, this.end)
  }

  int32(value: number): void {
    this.room(4)
    this.end = this.buffer.writeInt32BE(value, this.end)
  }

  /** Text that ends with a zero, as names do in the protocol. */
  name(text: string): void {
    this.room(utf8BytesMax * text.length + 1)
    this.end += this.buffer.write(text, this.end)
    this.byte(0)
  }

  /** Each of these stands behind its length. */
  uuid(text: string): void {
    this.int32(uuidBytes)
    this.room(uuidBytes)
    if (!writeUuid(this.buffer, this.end, text))
      throw new LatchkeyError('invariant', `${JSON.stringify(text)} is not a uuid`)
    this.end += uuidBytes
  }

  bytes(value: Uint8Array): void {
    this.int32(value.length)
    this.room(value.length)
    this.buffer.set(value, this.end)
    this.end += value.length
  }

  smallint(value: number): void {
    this.int32(2)
    this.int16(value)
  }

  bigint(value: bigint): void {
    this.int32(8)
    this.room(8)
    this.end = this.buffer.writeBigInt64BE(value, this.end)
  }

  float8(value: number): void {
    this.int32(8)
    this.room(8)
    this.end = this.buffer.writeDoubleBE(value, this.end)
  }

  text(value: string | null): void {
    if (value === null) {
      this.hasNulls = true
      return this.int32(nullLength)
    }
    this.room(4 + utf8BytesMax * value.length)
    const length = this.buffer.write(value, this.end + 4)
    this.int32(length)
    this.end += length
  }

  /** Leaves room for a number that is known later. Returns where. */
  later(): number {
    this.int32(0)
    return this.end - 4
  }

  /** Writes the number of bytes since then: in messages it counts itself, in values it does not. */
  lengthAt(at: number, countsItself: boolean): void {
    this.int32At(at, this.end - at - (countsItself ? 0 : 4))
  }

  int32At(at: number, value: number): void {
    this.buffer.writeInt32BE(value, at)
  }

  private room(bytes: number): void {
    if (this.end + bytes <= this.buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.buffer.length, this.end + bytes))
    this.buffer.copy(larger, 0, 0, this.end)
    this.buffer = larger
  }
}

/* Uuids are read and written by hand: every call has two of them, and `write` with 'hex' takes three times as long. */

const uuidBytes = 16
const uuidLength = 36
const hyphen = 0x2d
/** In either half it makes a value that is not a byte. */
const noDigit = 0x100
/** The value of a hexadecimal digit, by its code. */
const digits = Uint16Array.from({ length: 128 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(value) ? noDigit : value
})

/** False: the text is no uuid, and what stands in the buffer means nothing. */
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
  if (text.length !== uuidLength) return false
  for (let at = 0; at < uuidLength; at += 1) {
    const code = text.charCodeAt(at)
    const isRight = isHyphenAt(at) ? code === hyphen : (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x66)
    if (!isRight) return false
  }
  return true
}

function isHyphenAt(at: number): boolean {
  return at === 8 || at === 13 || at === 18 || at === 23
}

function valueOfDigit(text: string, index: number): number {
  return digits[text.charCodeAt(index)] ?? noDigit
}
