import { OutgoingMessage } from 'node:http'
import type { Held } from './held-response.ts'

/** Makes the response what it was when the capture started, except for its headers: it has none. */
export function restart({ res, start, interim }: Held): void {
  const { socket, _onPendingData, useChunkedEncodingByDefault, _keepAliveTimeout, maxRequestsOnConnectionReached } = res
  const kept = { _onPendingData, useChunkedEncodingByDefault, _keepAliveTimeout, maxRequestsOnConnectionReached }
  // Node's own constructor, so that nothing of the handler's is forgotten. It is a function, and leaves listeners alone.
  Reflect.apply(OutgoingMessage, res, [{ highWaterMark: res.writableHighWaterMark }])
  Object.assign(res, kept, start)
  res.socket = socket
  for (const entry of interim) res.outputData.push(entry)
}
