/**
 * Joins fields so that no two lists of fields give the same bytes: each is preceded by its length, and an absent field
 * differs from an empty one. Strings are written as UTF-8.
 */
export function frame(fields: readonly (string | Uint8Array | undefined)[]): Uint8Array {
  return Buffer.concat(fields.flatMap(frameOne))
}

function frameOne(field: string | Uint8Array | undefined): Uint8Array[] {
  const length = Buffer.alloc(5)
  if (field === undefined) return [length]
  const bytes = typeof field === 'string' ? Buffer.from(field) : field
  length[0] = 1
  length.writeUInt32BE(bytes.length, 1)
  return [length, bytes]
}
