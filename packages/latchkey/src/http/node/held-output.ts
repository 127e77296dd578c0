/** What a handler does to its response while that is held: it writes, waits for room, and listens. */
import type { Http1Response, Listener, OutputEntry } from './driver.ts'
import type { Held } from './held-response.ts'
import { needDrain } from './stand-in-socket.ts'

/** Takes what the handler has written, as writing it to a socket would. */
export function retain(held: Held, entries: readonly OutputEntry[]): void {
  const { res, output } = held
  const callbacks: NonNullable<OutputEntry['callback']>[] = []
  for (const { data, encoding, callback } of entries) {
    const isText = typeof data === 'string'
    // Texts at their longest, because measuring each would cost every response.
    held.bytes += isText ? data.length * utf8BytesMax : data.length
    // Copied, because the writer may reuse its buffer. Nothing is written after `end`.
    if (data.length > 0)
      output.push({ data: isText || res.finished ? data : Buffer.from(data), encoding, callback: null })
    if (typeof callback === 'function') callbacks.push(callback)
  }
  for (const callback of callbacks) callback()
}

/** Of one unit of a JavaScript string. */
const utf8BytesMax = 3

export function isWaiting(res: Http1Response): boolean {
  return Reflect.get(res, needDrain) === true && !res.finished
}

export function drain({ res, isReleased }: Held): void {
  if (isReleased || !isWaiting(res)) return
  Reflect.set(res, needDrain, false)
  res.emit('drain')
}

export function takeListeners(res: Http1Response, event: string): readonly Listener[] {
  const listeners = res.rawListeners(event) as Listener[] // Node types them as any function
  for (const listener of listeners) res.removeListener(event, listener)
  return listeners
}
