/** Values as PostgreSQL's binary protocol has them, written into one buffer that is used again for the next message. */
import { LatchkeyError } from '../../../ports/errors.ts'
import { uuidBytes, writeUuid } from './uuid.ts'

const firstBytes = 16_384
/** A larger buffer is not kept: one batch of large answers must not cost memory for ever. */
const keptBytesMax = 1 << 20
/** Of one unit of UTF-16. */
const utf8BytesMax = 3
export const nullLength = -1

/** A class, because what it writes to changes with every call, and every request makes dozens of them. */
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
