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

/** One byte for being there, four for the length. */
const lengthBytes = 5

function sizeOf(field: string | Uint8Array | undefined): number {
  if (field === undefined) return 0
  return typeof field === 'string' ? Buffer.byteLength(field) : field.length
}

/** Where the next field goes. */
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
