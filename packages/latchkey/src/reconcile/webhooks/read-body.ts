/** The raw bytes of a body, up to a limit. */

/** Reads no further than it must: what comes after the limit is the server's to throw away. */
export async function readBounded(
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<Uint8Array | 'too-large'> {
  if (body === null) return new Uint8Array()
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks)
    bytes += value.byteLength
    if (bytes > bytesMax) {
      await reader.cancel()
      return 'too-large'
    }
    chunks.push(value)
  }
}
