/** Removes the framing of chunks (RFC 9112, section 7.1) from what Node writes, however that is cut into pieces. */
export function readChunks(): (piece: Uint8Array) => Uint8Array[] {
  /** Of the line with a chunk's size, which may be cut as well. */
  let line = ''
  let bytesLeft = 0
  let isOver = false

  function readSize(text: string): void {
    // A chunk is followed by an empty line.
    if (text === '') return
    bytesLeft = Number.parseInt(text, 16)
    isOver = !(bytesLeft > 0)
  }

  return piece => {
    const parts: Uint8Array[] = []
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    for (let at = 0; at < bytes.byteLength && !isOver;) {
      if (bytesLeft > 0) {
        const part = bytes.subarray(at, at + bytesLeft)
        parts.push(part)
        bytesLeft -= part.byteLength
        at += part.byteLength
        continue
      }
      const end = bytes.indexOf('\n', at)
      line += bytes.toString('latin1', at, end < 0 ? undefined : end)
      if (end < 0) return parts
      readSize(line.trim())
      line = ''
      at = end + 1
    }
    return parts
  }
}
