/**
 * Captures a response whose insides are not known: HTTP/2's, one that was ended before the capture, and all of them on a Node that
 * holds responses back in another way. The handler works on a response of HTTP/1 that leads nowhere, to which the real one forwards.
 */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Writable } from 'node:stream'
import type { Header } from '../../ports/outcome.ts'
import { addedHeaders } from '../exchange/exchange.ts'
import type { Capture } from './capture.ts'
import { canStream, type DetachedStream, setHead, streamDetached } from './stream/detached-stream.ts'
import type { Http1Response, Listener, NodeRequest, NodeResponse, OutputEntry } from './driver.ts'
import { callUnder, lay, type Laid, type Method, overlay, takeAway, type Value } from './overlay.ts'
import { endOfStream, type Growing, hasOutgrown, isEventStream } from './stream/response-growth.ts'
import { bodySent, type CaptureEnd, endOf, headersOf, headersSent } from './response.ts'
import { resetHeaders, sendAnswer, sendBody, setHeaders, trailersOf } from './response.ts'
import { needDrain } from './stand-in-socket.ts'

const state: unique symbol = Symbol('latchkey: detached')

interface Detached {
  /** The response that the handler works on. */
  readonly own: Http1Response & ServerResponse
  readonly laid: Laid
}

interface ForwardingResponse extends NodeResponse {
  [state]?: Detached | undefined
}

/** The response to which this one forwards. */
export function detachedFrom(res: ForwardingResponse): NodeResponse | undefined {
  return res[state]?.own
}

export interface DetachOptions {
  readonly req: NodeRequest | undefined
  /** The largest body that is held. */
  readonly bytesMax: number
}

export function captureDetached(res: ForwardingResponse, { req, bytesMax }: DetachOptions): Capture {
  const before = headersOf(res)
  const hasBegun = res.headersSent && !res.writableEnded
  const output: OutputEntry[] = []
  let stream: DetachedStream | undefined
  const sink = sinkFor((bytes, taken) => {
    if (stream !== undefined) return stream.write(bytes, taken)
    output.push({ data: bytes, encoding: null, callback: null })
    growing.bytes += bytes.byteLength
    // One turn of the event loop for each time that it is full: a fast source must not starve the process.
    setImmediate(() => {
      if (!own.finished && !hasBegun && canStream(laid) && hasOutgrown(growing)) startStream()
      taken()
    })
  })
  const { own, laid } = detach(res, before, sink)
  const growing: Growing = { res: own, output, bytesMax, bytes: 0, bytesAllowed: bytesMax, isTypeSeen: false }
  const showRequest = req === undefined ? ignore : hideDisconnect(req)
  let end: CaptureEnd | undefined
  const ended = new Promise<CaptureEnd>(resolve => {
    own.on('close', () => {
      end = endOfOwn({ own, before, output, hasBegun, stream })
      resolve(end)
    })
  })

  function startStream(): void {
    stream = streamDetached(res, { own, laid, output, left })
  }

  /** The handler of an event stream sees it, because nothing else may ever end it. */
  function left(): void {
    if (!isEventStream(own)) return
    showRequest()
    sink.destroy()
  }

  /** False where no client is left to send to: it disconnected, or was answered before the capture. */
  function giveBack(): boolean {
    takeAway(res, laid)
    res[state] = undefined
    if (!own.writableFinished) moveListeners(own, res)
    showRequest()
    return !res.writableEnded && res.destroyed !== true
  }
  return {
    ended,
    get isStreaming() {
      return stream !== undefined
    },
    release(extra) {
      if (!giveBack()) return
      if (end === undefined || end.kind === 'broken') return void res.destroy(end?.error)
      if (stream !== undefined) return sendBody(res, stream.rest(), trailersOf(own))
      const body = bodySent(own, output)
      if (hasBegun) return void res.end(body)
      setHead(res, own, extra)
      sendBody(res, body, trailersOf(own))
    },
    replace(answer) {
      if (!giveBack()) return
      // The client has part of an answer, which cannot be taken back.
      if (hasBegun || stream !== undefined) return void res.destroy(cutOff)
      resetHeaders(res, before)
      sendAnswer(res, answer)
    },
  }
}

interface Ended extends Pick<Detached, 'own'> {
  readonly before: readonly Header[]
  readonly output: readonly OutputEntry[]
  readonly hasBegun: boolean
  readonly stream: DetachedStream | undefined
}

function endOfOwn({ own, before, output, hasBegun, stream }: Ended): CaptureEnd {
  const known = { res: own, isFinished: own.writableFinished, error: own.errored }
  if (stream === undefined) return endOf({ ...known, before, output, hasBegun })
  const { bytes, isClientGone } = stream
  const response = { status: own.statusCode, headers: addedHeaders(before, headersSent(own)), body: undefined }
  return endOfStream({ ...known, response, bytes, isClientGone, isEventStream: isEventStream(own) })
}

/** Without an error, a client would be told that the stream has ended well. */
const cutOff = new Error('the answer was replaced after a part of it had been sent')

function detach(res: ForwardingResponse, before: readonly Header[], sink: Writable): Detached {
  const { method } = (Reflect.get(res, 'req') ?? {}) as Partial<IncomingMessage> // a response has its request
  const request = { method, httpVersionMajor: 1, httpVersionMinor: 1, headers: {} }
  // The constructor reads these members. The response has the undocumented ones.
  const own = new ServerResponse(request as IncomingMessage) as Http1Response & ServerResponse
  own.assignSocket(sink as Socket) // of which a response uses what every stream has
  own.statusCode = res.statusCode
  setHeaders(own, before)
  // Looked up, because middleware of the handler's own may have put a hook over it.
  Reflect.set(own, '_implicitHeader', () => call(res, Reflect.get(res, 'writeHead'), [own.statusCode]))
  own.on('error', ignore)
  sink.on('error', ignore)
  sink.on('drain', () => {
    Reflect.set(own, needDrain, false)
    if (!own.finished) own.emit('drain')
  })
  // Node closes the response with its socket.
  own.on('finish', () => sink.destroy())
  const detached: Detached = { own, laid: lay(res, forwarding) }
  res[state] = detached
  return detached
}

/** `take` gets bytes of its own, and is called again when it has called back. */
function sinkFor(take: (bytes: Uint8Array, taken: () => void) => void): Writable {
  return new Writable({
    write: (chunk: Buffer, _, done) => take(Buffer.from(chunk), done),
    writev(chunks, done) {
      const pieces = chunks as readonly { chunk: Buffer }[] // strings were decoded
      take(Buffer.concat(pieces.map(({ chunk }) => chunk)), done)
    },
  })
}

/** Listeners that wait for an end that the handler has not reached learn of the real one. */
function moveListeners(own: Http1Response, res: NodeResponse): void {
  for (const event of ['finish', 'close']) {
    const [, ...listeners] = own.rawListeners(event) as Listener[] // without ours; Node types them as any function
    for (const listener of listeners) {
      if (event === 'close' && res.destroyed === true) process.nextTick(() => Reflect.apply(listener, res, []))
      else res.on(event, listener)
    }
  }
}

function ignore(): void {}

function call(target: object, method: unknown, args: readonly unknown[]): unknown {
  return typeof method === 'function' ? Reflect.apply(method, target, args) : undefined
}

function forward(name: string): Method {
  return function (this: ForwardingResponse, ...args: unknown[]) {
    const own = this[state]?.own
    // Called late, by code that has kept it: the response has its own method again.
    if (own === undefined) return call(this, Reflect.get(this, name), args)
    const value = call(own, Reflect.get(own, name), args)
    return value === own ? this : value
  }
}

/** Calls the method underneath: 1xx is sent at once, because it is not part of the answer. */
function sendNow(name: string): Method {
  return function (this: ForwardingResponse, ...args: unknown[]) {
    const laid = this[state]?.laid
    return laid === undefined ? call(this, Reflect.get(this, name), args) : callUnder(this, laid, [name, args])
  }
}

/** Events of the connection, which are for the listeners outside. The handler's listeners are on its own response. */
const outsideEvents = new Set(['close', 'finish', 'prefinish', 'drain', 'timeout', 'socket'])

function emit(this: ForwardingResponse, event: string, ...args: unknown[]): unknown {
  const way = outsideEvents.has(event) ? sendNow('emit') : forward('emit')
  return call(this, way, [event, ...args])
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

/** The server sets it when the connection closes. The handler does not see that; the response has it again afterwards. */
function hideValue(name: string): Value {
  return {
    ...forwardValue(name),
    set(this: ForwardingResponse, value) {
      const real = this[state]?.laid.covered.get(name)
      if (real !== undefined) real.value = value
    },
  }
}

const interim = ['writeContinue', 'writeProcessing', 'writeEarlyHints', 'writeInformation']
const ofConnection = ['constructor', 'emit', 'socket', 'connection', 'setTimeout', 'assignSocket', 'detachSocket']

/** All public members of a response, except for those of its connection. */
function forwardingMembers(): [methods: Record<string, Method>, values: Record<string, Value>] {
  const methods: Record<string, Method> = { emit }
  const values = Object.fromEntries(['statusCode', 'statusMessage', '_header'].map(name => [name, forwardValue(name)]))
  for (const name of ['destroyed', 'finished']) values[name] = hideValue(name)
  let prototype = ServerResponse.prototype as object
  // Object.prototype, the last of them, is recognised by having none itself: under Jest, Node's own is another than ours.
  for (; Object.getPrototypeOf(prototype) !== null; prototype = Object.getPrototypeOf(prototype) as object) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (ofConnection.includes(name) || name.startsWith('_') || name in methods || name in values) continue
      if (typeof value !== 'function') values[name] = forwardValue(name)
      else methods[name] = interim.includes(name) ? sendNow(name) : forward(name)
    }
  }
  return [methods, values]
}

const forwarding = overlay(...forwardingMembers())

const disconnectEvents = new Set(['close', 'aborted', 'error'])
const no: Value = { get: () => false }

/** What happens to the request meanwhile is reported when the returned function is called first. */
function hideDisconnect(req: NodeRequest): () => void {
  const missed: unknown[][] = []
  const emitInside = (event: string, ...args: unknown[]): unknown => {
    if (!disconnectEvents.has(event)) return callUnder(req, laid, ['emit', [event, ...args]])
    missed.push([event, ...args])
    return false
  }
  const laid = lay(req, overlay({ emit: emitInside }, { destroyed: no, aborted: no }))
  let isShown = false
  return () => {
    if (isShown) return
    isShown = true
    takeAway(req, laid)
    for (const [event, ...args] of missed) process.nextTick(() => req.emit(String(event), ...args))
  }
}
