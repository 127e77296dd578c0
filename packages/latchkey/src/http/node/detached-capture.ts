/**
 * Captures a response whose insides are not known: HTTP/2's, one that was ended before the capture, and all of them on a Node that
 * holds responses back in another way. The handler works on a response of HTTP/1 that leads nowhere, to which the real one forwards.
 */
import { EventEmitter } from 'node:events'
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Writable } from 'node:stream'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'
import type { Capture } from './capture.ts'
import type { Http1Response, Listener, NodeRequest, NodeResponse, OutputEntry } from './driver.ts'
import { type CaptureEnd, endOf } from './held-response.ts'
import { callUnder, lay, type Laid, type Method, overlay, takeAway, type Value } from './overlay.ts'
import {
  bodySent,
  endWith,
  headersOf,
  headersSent,
  isHttp2,
  resetHeaders,
  sendAnswer,
  setHeaders,
  trailersOf,
} from './response-head.ts'
import { needDrain } from './stand-in-socket.ts'

const state: unique symbol = Symbol('latchkey: detached')

interface Detached {
  readonly res: ForwardingResponse
  /** The response that the handler works on. */
  readonly own: Http1Response & ServerResponse
  readonly output: OutputEntry[]
  readonly laid: Laid
  /** The capture around this one: an operation inside another one's handler. */
  readonly outer: Detached | undefined
}

interface ForwardingResponse extends NodeResponse {
  [state]?: Detached | undefined
}

export function captureDetached(res: ForwardingResponse, req: NodeRequest | undefined): Capture {
  const before = headersOf(res)
  const hasBegun = res.headersSent && !res.writableEnded
  const detached = detach(res)
  const { own, output } = detached
  setHeaders(own, before)
  const restoreRequest = req === undefined ? undefined : hideDisconnect(req)
  let end: CaptureEnd | undefined
  const ended = new Promise<CaptureEnd>(resolve => {
    own.on('close', () => {
      const isFinished = own.writableFinished
      end ??= endOf({ res: own, before, output, hasBegun, isFinished, error: own.errored })
      resolve(end)
    })
  })

  function giveBack(): boolean {
    takeAway(res, detached.laid)
    res[state] = detached.outer
    if (!own.writableFinished) moveListeners(own, res)
    restoreRequest?.()
    // The client has left, or was answered before the capture.
    return !res.writableEnded && res.destroyed !== true
  }
  return {
    ended,
    release(extra) {
      if (!giveBack()) return
      if (end === undefined || end.kind === 'broken') return void res.destroy(end?.error)
      if (hasBegun) return void res.end(bodySent(own, output))
      resetHeaders(res, mergeHeaders(headersSent(own), extra))
      sendAgain(res, detached)
    },
    replace(answer) {
      if (!giveBack()) return
      // The client has part of an answer, which cannot be taken back.
      if (hasBegun) return void res.destroy()
      resetHeaders(res, before)
      sendAnswer(res, answer)
    },
  }
}

function detach(res: ForwardingResponse): Detached {
  // The members that the constructor reads.
  const request = { method: Reflect.get(res, 'req')?.method, httpVersionMajor: 1, httpVersionMinor: 1, headers: {} }
  // A response with the members that are not documented.
  const own = new ServerResponse(request as IncomingMessage) as Http1Response & ServerResponse
  const output: OutputEntry[] = []
  const sink = sinkOf(output)
  own.assignSocket(sink as Socket) // its members that a response uses
  own.statusCode = res.statusCode
  // Looked up, because middleware of the handler's own may have put a hook over it.
  Reflect.set(own, '_implicitHeader', () =>
    Reflect.apply(Reflect.get(res, 'writeHead') as Method, res, [own.statusCode]),
  ) // Node's
  sink.on('error', ignore)
  own.on('error', ignore)
  sink.on('drain', () => {
    Reflect.set(own, needDrain, false)
    if (!own.finished) own.emit('drain')
  })
  // Node closes the response with its socket.
  own.on('finish', () => sink.destroy())
  const detached: Detached = { res, own, output, laid: lay(res, forwarding), outer: res[state] }
  res[state] = detached
  return detached
}

/** Takes everything. One turn of the event loop for each time that it is full: a fast source must not starve the process. */
function sinkOf(output: OutputEntry[]): Writable {
  const keep = (chunk: Buffer) => output.push({ data: Buffer.from(chunk), encoding: null, callback: null })
  return new Writable({
    write(chunk: Buffer, _, done) {
      keep(chunk)
      setImmediate(done)
    },
    writev(chunks, done) {
      for (const { chunk } of chunks as readonly { chunk: Buffer }[]) keep(chunk) // strings were decoded
      setImmediate(done)
    },
  })
}

function sendAgain(res: NodeResponse, { own, output }: Detached): void {
  const [body, trailers] = [bodySent(own, output), trailersOf(own)]
  res.statusCode = own.statusCode
  // HTTP/2 has no reason phrase, and Node warns when one is set.
  if (!isHttp2(res)) res.statusMessage = own.statusMessage
  if (trailers === undefined) return endWith(res, body)
  res.write(body)
  res.addTrailers?.(trailers)
  res.end()
}

/** Listeners that wait for an end that the handler has not reached hear of the real one. */
function moveListeners(own: Http1Response, res: NodeResponse): void {
  for (const event of ['finish', 'close']) {
    const listeners = own.rawListeners(event) as Listener[] // Node types them as any function
    for (const listener of listeners.slice(1)) {
      if (event === 'close' && res.destroyed === true) process.nextTick(() => Reflect.apply(listener, res, []))
      else res.on(event, listener)
    }
  }
}

function ignore(): void {}

function forward(name: string): Method {
  return function (this: ForwardingResponse, ...args: unknown[]) {
    const own = this[state]?.own
    if (own === undefined) return callNode(this, name, args)
    const value = callNode(own, name, args)
    return value === own ? this : value
  }
}

/** The class's method. The response has it again where the capture has ended, or where Node calls one method from another. */
function callNode(res: object, name: string, args: readonly unknown[]): unknown {
  const method = Reflect.get(Object.getPrototypeOf(res) as object, name) as (...args: unknown[]) => unknown // one of Node's
  return Reflect.apply(method, res, args)
}

function forwardValue(name: string): Value {
  return {
    get(this: ForwardingResponse) {
      return Reflect.get(this[state]?.own ?? {}, name)
    },
    set(this: ForwardingResponse, value) {
      Reflect.set(this[state]?.own ?? {}, name, value)
    },
  }
}

/** A value that the server sets when the connection closes. The handler does not see that; the response has it again afterwards. */
function hideValue(name: string): Value {
  return {
    ...forwardValue(name),
    set(this: ForwardingResponse, value) {
      const real = this[state]?.laid.covered.get(name)
      if (real !== undefined) real.value = value
    },
  }
}

/** Events of the connection, which are for the listeners outside. The handler's listeners are on its own response. */
const outsideEvents = new Set(['close', 'finish', 'prefinish', 'drain', 'timeout', 'socket'])

function emit(this: ForwardingResponse, event: string, ...args: unknown[]): unknown {
  const detached = this[state]
  if (detached === undefined) return callNode(this, 'emit', [event, ...args])
  if (!outsideEvents.has(event)) return detached.own.emit(event, ...args)
  return callOutside(detached, 'emit', [event, ...args])
}

function callOutside(detached: Detached, name: string, args: readonly unknown[]): unknown {
  const { res, laid, outer } = detached
  // The method below may be another capture's, and has to find its own state.
  res[state] = outer
  try {
    return callUnder(res, laid, [name, args])
  } finally {
    res[state] = detached
  }
}

/** 1xx is sent at once: it is no part of the answer. */
function sendNow(name: string): Method {
  return function (this: ForwardingResponse, ...args: unknown[]) {
    const detached = this[state]
    return detached === undefined ? callNode(this, name, args) : callOutside(detached, name, args)
  }
}

const interim = ['writeContinue', 'writeProcessing', 'writeEarlyHints', 'writeInformation']
const ofConnection = new Set([
  'constructor',
  'emit',
  'socket',
  'connection',
  'setTimeout',
  'assignSocket',
  'detachSocket',
])

/** All public members of a response, except for those of its connection. */
function forwardingMembers(): [methods: Record<string, Method>, values: Record<string, Value>] {
  const methods: Record<string, Method> = { emit }
  const values = Object.fromEntries(['statusCode', 'statusMessage', '_header'].map(name => [name, forwardValue(name)]))
  for (const name of ['destroyed', 'finished']) values[name] = hideValue(name)
  let prototype = ServerResponse.prototype as object
  for (; prototype !== Object.prototype; prototype = Object.getPrototypeOf(prototype) as object) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (ofConnection.has(name) || name.startsWith('_') || name in methods || name in values) continue
      if (interim.includes(name)) methods[name] = sendNow(name)
      else if (typeof value === 'function') methods[name] = forward(name)
      else values[name] = forwardValue(name)
    }
  }
  return [methods, values]
}

const forwarding = overlay(...forwardingMembers())

const hiddenEvents = new Set(['close', 'aborted', 'error'])

interface HidingRequest extends NodeRequest {
  [missed]?: unknown[][] | undefined
}
const missed: unique symbol = Symbol('latchkey: missed')
const no: Value = { get: () => false }

const disconnect = overlay(
  {
    emit(this: HidingRequest, event: string, ...args: unknown[]): unknown {
      const events = this[missed]
      if (events === undefined || !hiddenEvents.has(event))
        return EventEmitter.prototype.emit.call(this as never, event, ...args) // a request is one
      events.push([event, ...args])
      return false
    },
  },
  { destroyed: no, aborted: no },
)

/** What happens to the request meanwhile is reported when the capture ends. */
function hideDisconnect(req: HidingRequest): () => void {
  const outer = req[missed]
  const events: unknown[][] = []
  const laid = lay(req, disconnect)
  req[missed] = events
  return () => {
    takeAway(req, laid)
    req[missed] = outer
    for (const [event, ...args] of events) process.nextTick(() => req.emit(String(event), ...args))
  }
}
