/**
 * Makes a response that Latchkey has answered deaf to a second answer.
 *
 * Nest answers whatever an interceptor gives it, and has no word for "already answered": an empty stream is an error there, an
 * error goes to the application's exception filters, and a stream that never ends leaves the interceptors around it (timings,
 * counters, timeouts) waiting for good. So the interceptor ends as after a handler that returned nothing, and the `send()` that
 * follows falls on deaf ears.
 */
import type { NodeResponse } from '../node/driver.ts'
import { callUnder, lay, type Laid, type Method, overlay } from '../node/overlay.ts'
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

const muting: unique symbol = Symbol('latchkey: muted')

interface Muted extends NodeResponse {
  [muting]?: Laid
}

function deaf(this: object): object {
  return this
}

/** Middleware around `end` (sessions, compression) may still be sending our own answer: until its head is out it passes. */
function deafOnceSent(name: string): Method {
  return function (this: Muted, ...args: unknown[]) {
    const laid = this[muting]
    return this.headersSent || laid === undefined ? this : callUnder(this, laid, [name, args])
  }
}

const mutedResponse = overlay(
  Object.fromEntries([...answering.map(name => [name, deaf]), ...heading.map(name => [name, deafOnceSent(name)])]),
  {},
)
const mutedReply = overlay(Object.fromEntries(replying.map(name => [name, deaf])), {})

/** Call it after the answer was handed to `res.end`. */
export function muteResponse(res: NodeResponse): void {
  const target: Muted = res
  target[muting] = lay(target, mutedResponse)
}

export function muteReply(reply: NestFastifyReply): void {
  lay(reply, mutedReply)
}
