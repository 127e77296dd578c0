/** Just enough of HTTP/1.1 to know when an answer is whole. */

const headEnd = Buffer.from('\r\n\r\n')
const lastChunk = Buffer.from('0\r\n\r\n')

/** The status, once head and body are there. One answer at a time is under way on a connection. */
export function statusOfWhole(received: Buffer): number | undefined {
  const end = received.indexOf(headEnd)
  if (end === -1) return undefined
  const head = received.toString('latin1', 0, end)
  const status = Number(head.slice(9, 12))
  const length = /\r\ncontent-length: ?(\d+)/i.exec(head)?.[1]
  if (length !== undefined) return received.length >= end + headEnd.length + Number(length) ? status : undefined
  if (!/\r\ntransfer-encoding: ?chunked/i.test(head)) return status
  return received.subarray(-lastChunk.length).equals(lastChunk) ? status : undefined
}
