/**
 * Reads an unread body, and puts it back for the handler: `request.file()` of @fastify/multipart, and parsers that
 * hand the stream on, begin to read it in the handler, and it must be known before that.
 */
import type { NodeResponse } from '../node/driver.ts'
import type { RawRequestLike } from './driver.ts'

/** What the tap on the stream has noted so far. Reading emits `data`, so it notes what is read here. */
export interface Noted {
  readonly bytes: number
  readonly bytesMax: number
}

/** Nothing of it was read, and its end can be recognised before the stream emits it: after that nothing can be put back. */
export function canReadAhead(raw: RawRequestLike): boolean {
  if (raw.readableDidRead || raw.readableFlowing !== null || raw.readableEncoding !== null) return false
  // Of an HTTP/2 request without a length, only the `end` event shows that it is complete.
  return raw.httpVersionMajor < 2 || lengthOf(raw) !== undefined
}

/**
 * `finish` is called as soon as all of it is noted, or too much: in the same turn, because the stream emits its end in the next one. Rejects
 * when the client leaves before.
 */
export function readAhead<T>(raw: RawRequestLike, noted: () => Noted, finish: () => T): Promise<T> {
  const length = lengthOf(raw)
  const isOver = () => {
    const { bytes, bytesMax } = noted()
    return bytes > bytesMax || (length === undefined ? raw.complete : bytes >= length)
  }
  return new Promise((resolve, reject) => {
    const events = { readable: take, close: cutOff, error: cutOff }
    function stop(): void {
      for (const [event, listener] of Object.entries(events)) raw.removeListener(event, listener)
    }
    function take(): void {
      while (raw.readableLength > 0 && raw.read() !== null) if (isOver()) break
      if (!isOver()) return
      stop()
      resolve(finish())
    }
    function cutOff(error?: Error): void {
      stop()
      reject(error ?? new Error('the client left before its request was complete'))
    }
    for (const [event, listener] of Object.entries(events)) raw.on(event, listener)
    take()
  })
}

/** Node discards what a handler leaves unread, but not of a request that was read from. */
export function discardAfter(res: NodeResponse, raw: RawRequestLike): void {
  res.once('close', () => raw.resume())
}

function lengthOf({ headers }: RawRequestLike): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}
