/**
 * Makes a response that Latchkey has answered ignore a second answer.
 *
 * Nest answers with whatever an interceptor returns, and has no way to learn that the response was answered already: an empty stream is
 * an error there, an error goes to the application's exception filters, and a stream that never ends leaves the interceptors around it
 * (timings, counters, timeouts) waiting forever. So the interceptor ends as after a handler that returned nothing, and the `send()` that
 * follows is ignored.
 */
import type { NodeResponse } from '../node/driver.ts'
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

/** Call it after the answer was given to `res.end`. */
export function ignoreFurtherAnswers(res: NodeResponse): void {
  replaceMethods(res, answering, () => () => res)
  // Middleware around `end` (sessions, compression) may still be sending our own answer: until its head is out it may change it.
  replaceMethods(
    res,
    heading,
    method =>
      (...args) =>
        res.headersSent ? res : Reflect.apply(method, res, args),
  )
}

export function ignoreFurtherReplies(reply: NestFastifyReply): void {
  replaceMethods(reply, replying, () => () => reply)
}

type Method = (...args: unknown[]) => unknown

function replaceMethods(target: object, names: readonly string[], replacement: (method: Method) => Method): void {
  for (const name of names) {
    const method: unknown = Reflect.get(target, name)
    if (typeof method !== 'function') continue
    const value = replacement(method as Method) // called with what its caller passes
    Object.defineProperty(target, name, { value, configurable: true, enumerable: false, writable: true })
  }
}
