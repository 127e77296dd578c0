/**
 * Joins fields so that no two lists of fields give the same bytes: each is preceded by its length, and an absent field
 * differs from an empty one. Strings are written as UTF-8.
 */
export function frame(fields: readonly (string | Uint8Array | undefined)[]): Uint8Array {
  let length = 0
  for (const field of fields) length += lengthBytes + sizeOf(field)
  const framed = Buffer.allocUnsafe(length)
  let at = 0
  for (const field of fields) at = writeField(framed, field, at)
  return framed
}

/** One byte for presence, four for the length. */
const lengthBytes = 5

function sizeOf(field: string | Uint8Array | undefined): number {
  if (field === undefined) return 0
  return typeof field === 'string' ? Buffer.byteLength(field) : field.length
}

/** Returns where the next field goes. */
function writeField(framed: Buffer, field: string | Uint8Array | undefined, at: number): number {
  if (field === undefined) {
    framed.fill(0, at, at + lengthBytes)
    return at + lengthBytes
  }
  const start = at + lengthBytes
  const size = sizeOf(field)
  framed[at] = 1
  framed.writeUInt32BE(size, at + 1)
  if (typeof field === 'string') framed.write(field, start)
  else framed.set(field, start)
  return start + size
}

/** The same for strings of one byte per character, without a buffer for each: a form may have almost as many pieces as bytes. */
export function framePieces(pieces: readonly string[]): Uint8Array {
  let length = 0
  for (const piece of pieces) length += lengthBytes + piece.length
  const framed = Buffer.allocUnsafe(length)
  let at = 0
  for (const piece of pieces) {
    framed[at] = 1
    framed.writeUInt32BE(piece.length, at + 1)
    writePiece(framed, piece, at + lengthBytes)
    at += lengthBytes + piece.length
  }
  return framed
}

/** From this length on, a call into the runtime is faster than a loop. */
const nativeMin = 32

function writePiece(framed: Buffer, piece: string, start: number): void {
  if (piece.length >= nativeMin) framed.write(piece, start, 'latin1')
  else for (let i = 0; i < piece.length; i++) framed[start + i] = piece.charCodeAt(i)
}
