/**
 * A small outcome as one value of its key's row, without the column headers and padding that four columns would cost. The
 * fence is inside: a value that an older grant left behind is recognised by it.
 *
 *   format and flags (4 bits each) · status (2 bytes, big endian) · fence · version · headers · body, up to the end
 *
 * Numbers without a size are varints. Headers are their count, then each name and value with its length in Latin-1; what
 * does not fit into Latin-1 is the JSON text that the columns have.
 */
import { LatchkeyError } from '../../ports/errors.ts'
import type { Header, Outcome } from '../../ports/outcome.ts'
import { headersFromText, headersToText } from './outcome-codec.ts'

const format = 0x10
const formatBits = 0xf0
const hasBody = 1
const headersAreJson = 2

/** Names that most answers have take one byte. Only ever append: stored rows hold the positions. */
const commonNames: readonly string[] = ['content-type', 'location', 'etag', 'cache-control', 'content-language']
const commonValues: readonly string[] = [
  'application/json',
  'application/json; charset=utf-8',
  'application/json; charset=UTF-8',
  'text/plain; charset=utf-8',
  'application/problem+json',
]

export function packOutcome({ status, version, headers, body }: Outcome, fence: number): Buffer {
  const latin = headers.every(([name, value]) => isLatin1(name) && isLatin1(value))
  const parts: (number | Uint8Array)[] = [format | (body === undefined ? 0 : hasBody) | (latin ? 0 : headersAreJson)]
  parts.push((status >> 8) & 0xff, status & 0xff)
  pushVarint(parts, fence)
  pushVarint(parts, version)
  if (latin) pushHeaders(parts, headers)
  else pushBytes(parts, Buffer.from(headersToText(headers)))
  if (body !== undefined) parts.push(body)
  return joined(parts)
}

/** Larger ones would crowd the pages that every claim reads and writes. */
const packedBytesMax = 1_024

/** For the row of its key. Undefined: it is too large, and is stored apart. */
export function packedOutcome(outcome: Outcome, fence: number): Buffer | undefined {
  if ((outcome.body?.length ?? 0) > packedBytesMax) return undefined
  const packed = packOutcome(outcome, fence)
  return packed.length > packedBytesMax ? undefined : packed
}

/** Undefined: it belongs to another grant of the row. */
export function unpackOutcome(bytes: Uint8Array, fence: number): Outcome | undefined {
  const reader = readerOf(bytes)
  const flags = reader.byte()
  if ((flags & formatBits) !== format) {
    throw new LatchkeyError('invariant', `a stored outcome has format ${flags >> 4}, which this version does not know`)
  }
  const status = reader.byte() * 256 + reader.byte()
  if (reader.varint() !== fence) return undefined
  const version = reader.varint()
  const headers =
    flags & headersAreJson ? headersFromText(reader.bytes(reader.varint()).toString()) : readHeaders(reader)
  return { status, version, headers, body: flags & hasBody ? reader.rest() : undefined }
}

/** Zero is a string with its length; the others are positions in a list. */
function pushText(parts: (number | Uint8Array)[], text: string, common: readonly string[]): void {
  const position = common.indexOf(text)
  parts.push(position + 1)
  if (position === -1) pushBytes(parts, Buffer.from(text, 'latin1'))
}

function pushHeaders(parts: (number | Uint8Array)[], headers: readonly Header[]): void {
  pushVarint(parts, headers.length)
  for (const [name, value] of headers) {
    pushText(parts, name, commonNames)
    pushText(parts, value, commonValues)
  }
}

function readHeaders(reader: Reader): readonly Header[] {
  const text = (common: readonly string[]) => {
    const position = reader.byte()
    if (position === 0) return reader.bytes(reader.varint()).toString('latin1')
    const known = common[position - 1]
    if (known !== undefined) return known
    throw new LatchkeyError('invariant', `a stored header has code ${position}, which this version does not know`)
  }
  const count = reader.varint()
  // Each takes two bytes at least: a damaged count must not make a list of that length.
  if (count > reader.left() / 2) throw new LatchkeyError('invariant', `a stored outcome claims ${count} headers`)
  return Array.from({ length: count }, (): Header => [text(commonNames), text(commonValues)])
}

function pushBytes(parts: (number | Uint8Array)[], bytes: Uint8Array): void {
  pushVarint(parts, bytes.length)
  parts.push(bytes)
}

/** Seven bits a byte, the lowest first. Not by shifting: a fence may be larger than 32 bits. */
function pushVarint(parts: (number | Uint8Array)[], value: number): void {
  let left = value
  for (; left > 0x7f; left = Math.floor(left / 0x80)) parts.push((left % 0x80) | 0x80)
  parts.push(left)
}

function joined(parts: readonly (number | Uint8Array)[]): Buffer {
  const size = parts.reduce<number>((sum, part) => sum + (typeof part === 'number' ? 1 : part.length), 0)
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  for (const part of parts) {
    if (typeof part === 'number') at = bytes.writeUInt8(part, at)
    else {
      bytes.set(part, at)
      at += part.length
    }
  }
  return bytes
}

interface Reader {
  byte(): number
  varint(): number
  bytes(length: number): Buffer
  rest(): Buffer
  /** How many bytes are left. */
  left(): number
}

function readerOf(source: Uint8Array): Reader {
  const bytes = Buffer.from(source.buffer, source.byteOffset, source.byteLength)
  let at = 0
  const cut = () => new LatchkeyError('invariant', `a stored outcome of ${bytes.length} bytes ends before its parts do`)
  const reader: Reader = {
    byte() {
      const value = bytes[at]
      if (value === undefined) throw cut()
      at += 1
      return value
    },
    varint() {
      let value = 0
      for (let scale = 1; ; scale *= 0x80) {
        const byte = reader.byte()
        value += (byte & 0x7f) * scale
        if (byte < 0x80) return value
      }
    },
    bytes(length) {
      if (at + length > bytes.length) throw cut()
      at += length
      return bytes.subarray(at - length, at)
    },
    rest: () => bytes.subarray(at),
    left: () => bytes.length - at,
  }
  return reader
}

function isLatin1(text: string): boolean {
  // Every UTF-16 unit below 256, U+0000 included: lengths are explicit, so nothing has to be escaped.
  // oxlint-disable-next-line no-control-regex
  return /^[\u0000-\u00ff]*$/.test(text)
}
