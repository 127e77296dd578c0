/**
 * Makes a response that Latchkey has answered deaf to a second answer.
 *
 * Nest answers whatever an interceptor gives it, and has no word for "already answered": an empty stream is an error there, an
 * error goes to the application's exception filters, and a stream that never ends leaves the interceptors around it (timings,
 * counters, timeouts) waiting for good. So the interceptor ends as after a handler that returned nothing, and the `send()` that
 * follows falls on deaf ears.
 */
import type { NodeResponse } from '../capture/node-types.ts'
import { overrides } from '../capture/overrides.ts'
import type { NestFastifyReply } from './driver.ts'

const answering = [
  'status',
  'sendStatus',
  'send',
  'json',
  'jsonp',
  'sendFile',
  'download',
  'redirect',
  'render',
  'write',
  'end',
]
const heading = ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader', 'writeHead', 'flushHeaders']
const replying = ['code', 'status', 'send', 'redirect', 'view', 'viewAsync']

/** Call it after the answer was handed to `res.end`. */
export function muteResponse(res: NodeResponse): void {
  const own = overrides(res)
  for (const name of answering) if (name in res) own.method(name, () => res)
  for (const name of heading) {
    const real = own.original(name)
    // Middleware around `end` (sessions, compression) may still be sending our own answer: until its head is out it passes.
    if (real !== undefined) own.method(name, (...args: unknown[]) => (res.headersSent ? res : real(...args)))
  }
}

export function muteReply(reply: NestFastifyReply): void {
  const own = overrides(reply)
  for (const name of replying) if (name in reply) own.method(name, () => reply)
}
