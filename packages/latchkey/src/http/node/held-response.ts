/**
 * A response of HTTP/1 whose bytes wait in it. Node itself holds them back, as it does for a response that has to wait for the one
 * ahead of it on the same connection: while the handler runs, the socket that the response finds belongs to another one.
 */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Header } from '../../ports/outcome.ts'
import type { Http1Request, Http1Response, Listener, OutputEntry } from './driver.ts'
import { drain, isWaiting, needDrain, type Outside, retain, type SocketUse, StandInSocket } from './stand-in-socket.ts'
import { takeListeners, UnsentResponse } from './stand-in-socket.ts'
import { coverHooks, type Hooks, restoreHooks } from './hooks.ts'
import { type Growing, hasOutgrown } from './stream/response-growth.ts'
import { bodySent, type CaptureEnd, endOf, headersOf } from './response.ts'
import { endOfStreamed, passOn, startStream, type StreamedResponse, takeTurn } from './stream/streamed-response.ts'

type HiddenEvent = 'finish' | 'close'

export interface HoldOptions {
  readonly req: Http1Request | undefined
  readonly bytesMax: number
}

/** A class, which is also what its stand-ins report to, because every request has one. */
export class Held implements Growing, SocketUse, Outside {
  readonly res: Http1Response
  readonly bytesMax: number
  /** The headers that outer middleware had set. */
  readonly before: readonly Header[]
  /** Bytes of the response were sent before the capture. */
  readonly hasBegun: boolean
  readonly start: Partial<Http1Response>
  readonly hooks: Hooks | undefined
  readonly onPendingData: Http1Response['_onPendingData']
  /** Those outside the capture: the server's own, and outer middleware's. */
  readonly listeners: Readonly<Record<HiddenEvent, readonly Listener[]>>
  readonly own: Readonly<Record<HiddenEvent, Listener>>
  readonly sharedListener: unknown
  readonly socket: StandInSocket
  readonly unsent: UnsentResponse
  restoreRequest: (() => void) | undefined
  readonly output: OutputEntry[] = []
  /** 1xx answers that wait for the connection. */
  readonly interim: OutputEntry[] = []
  bytes = 0
  bytesAllowed: number
  isTypeSeen = false
  /** Set once the answer goes to the client while its handler writes it. */
  streamed: StreamedResponse | undefined = undefined
  isTaking = false
  isFinished = false
  isHijacked = false
  isReleased = false
  error: unknown = undefined
  end: CaptureEnd | undefined = undefined
  readonly ended: Promise<CaptureEnd>
  resolve: (end: CaptureEnd) => void = ignore

  constructor(res: Http1Response, { req, bytesMax }: HoldOptions) {
    this.res = res
    this.bytesMax = bytesMax
    this.bytesAllowed = bytesMax
    this.before = headersOf(res)
    this.hasBegun = res._header !== null
    this.start = startOf(res)
    // An answer that outer middleware has begun goes through it to the end.
    this.hooks = !this.hasBegun && hasHooks(res) ? coverHooks(res) : undefined
    this.onPendingData = res._onPendingData
    this.listeners = { finish: takeListeners(res, 'finish'), close: takeListeners(res, 'close') }
    this.own = { finish: () => finish(this), close: () => settle(this, endOfHeld(this)) }
    this.sharedListener = res.__onFinished
    this.socket = new StandInSocket(res.socket ?? req?.socket ?? null, this)
    this.unsent = new UnsentResponse(res, this)
    this.restoreRequest = req === undefined ? undefined : hideDisconnect(req, this.socket)
    this.ended = new Promise(resolve => (this.resolve = resolve))
  }

  hijacked(): void {
    this.isHijacked = true
    settle(this, { kind: 'unreplayable', status: this.res.statusCode, why: 'the handler wrote to the socket itself' })
  }

  destroyed(error: unknown): void {
    if (this.res.finished) return
    this.error = error
    process.nextTick(close, this)
  }

  /** An event of the server's. The handler must not learn that the connection has closed. */
  emit(event: string, args: readonly unknown[]): boolean {
    const { res, socket, listeners } = this
    if (event !== 'close') return res.emit(event, ...args.map(one => (one === socket.real ? socket : one)))
    for (const listener of listeners.close) Reflect.apply(listener, res, args)
    return listeners.close.length > 0
  }

  assigned(real: object): void {
    this.socket.attach(real)
    this.res.socket = this.socket
    if (this.streamed !== undefined) takeTurn(this, this.streamed)
  }
}

export function hold(res: Http1Response, options: HoldOptions): Held {
  const { req } = options
  shareShape(res)
  if (req !== undefined) shareShape(req)
  const held = new Held(res, options)
  if (held.sharedListener !== undefined) res.__onFinished = undefined
  res.on('finish', held.own.finish)
  res.on('close', held.own.close)
  res._onPendingData = () => outputAdded(held)
  res.destroyed = false
  res._closed = false
  if (res.socket !== null) coverSocket(held)
  // A request that was sent behind another one gets its connection when the other one is answered.
  else res.assignSocket = real => Reflect.apply(ServerResponse.prototype.assignSocket, held.unsent, [real])
  return held
}

/** Whether middleware or a subclass has put methods of its own in place of Node's. */
function hasHooks({ writeHead, write, end }: Http1Response): boolean {
  const plain: Pick<Http1Response, 'writeHead' | 'write' | 'end'> = ServerResponse.prototype
  return end !== plain.end || write !== plain.write || writeHead !== plain.writeHead
}

/** Node 22 and older; newer ones would lose a third of their speed by what `shareShape` does. */
const hasOwnShapes = Number.parseInt(process.versions.node, 10) < 24

/**
 * Express gives every request and response its prototype by hand. From then on an older runtime takes each for a kind of its own, and
 * looks every member of it up the slow way. A member that is deleted from between others turns the object into a table, and all tables
 * with one prototype are of one kind.
 */
function shareShape(object: object): void {
  // The prototype of a class, and of a constructor function, names it.
  if (!hasOwnShapes || Object.hasOwn(Object.getPrototypeOf(object) as object, 'constructor')) return
  const target: { [between]?: unknown; [last]?: unknown } = object
  target[between] = undefined
  target[last] = undefined
  delete target[between]
  delete target[last]
}

const between: unique symbol = Symbol('between')
const last: unique symbol = Symbol('last')

/** What outer code may have chosen, and the handler may change. */
function startOf(res: Http1Response): Partial<Http1Response> {
  const { shouldKeepAlive, sendDate, strictContentLength, _hasBody } = res
  const { _removedConnection, _removedContLen, _removedTE } = res
  return { shouldKeepAlive, sendDate, strictContentLength, _hasBody, _removedConnection, _removedContLen, _removedTE }
}

function coverSocket({ res, socket, unsent }: Held): void {
  if (!socket.isNested && socket.real !== null) Reflect.set(socket.real, '_httpMessage', unsent)
  res.socket = socket
}

/** The client's disconnect destroys the request, which is put off until the capture ends. */
function hideDisconnect(req: Http1Request, socket: StandInSocket): () => void {
  const { real } = socket
  const { destroy, __onFinished: sharedListener } = req
  const isOwn = Object.hasOwn(req, 'destroy')
  let missed: readonly [error: unknown] | undefined
  req.destroy = function (error) {
    const isDisconnect = error !== undefined && real !== null && Reflect.get(real, 'destroyed') === true
    if (!isDisconnect) return destroy?.call(this, error)
    missed = [error]
    return this
  }
  if (real !== null) req.socket = socket
  if (sharedListener !== undefined) req.__onFinished = undefined
  return () => {
    if (isOwn && destroy !== undefined) req.destroy = destroy
    else delete req.destroy
    if (req.socket === socket) req.socket = real
    if (req.__onFinished !== sharedListener) req.__onFinished = sharedListener
    if (missed !== undefined) req.destroy?.(...missed)
  }
}

/** Node calls it when it has added to the output. */
function outputAdded(held: Held): void {
  if (held.res._header === null) return sendInterim(held)
  if (held.isTaking) return
  held.isTaking = true
  process.nextTick(takeOutput, held)
}

/** 1xx is sent at once, because it is not part of the answer. */
function sendInterim({ res, socket, interim, onPendingData }: Held): void {
  const entry = res.outputData.at(-1)
  if (entry === undefined) return
  if (socket.isNested) return onPendingData.call(res, entry.data.length)
  res.outputData.pop()
  res.outputSize -= entry.data.length
  if (res.socket === null) interim.push(entry)
  else socket.writeReal(entry)
}

/** Does to the output what writing it to a socket would. */
function takeOutput(held: Held): void {
  if (held.isReleased) return
  const { res, streamed } = held
  held.isTaking = false
  const entries = res.outputData.splice(0)
  if (streamed !== undefined) return passOn(held, streamed, entries)
  res.outputSize = 0
  retain(held, entries)
  // A handler that has ended left nothing to wait for: its answer is stored before the first byte, however large it is.
  if (!res.finished && !held.socket.isNested && hasOutgrown(held)) return startStream(held, showDisconnect)
  // One turn of the event loop per full buffer: a fast source must not starve the process.
  if (isWaiting(res)) setImmediate(drain, held)
}

function endOfHeld(held: Held): CaptureEnd {
  return held.streamed === undefined ? endOf(held) : endOfStreamed(held, held.streamed)
}

/** To the handler, as if there were no capture. */
function showDisconnect(held: Held): void {
  held.socket.reveal()
  showRequest(held)
  close(held)
}

function showRequest(held: Held): void {
  held.restoreRequest?.()
  held.restoreRequest = undefined
}

/** Node closes a response right after it has finished. */
function finish(held: Held): void {
  held.isFinished = true
  process.nextTick(close, held)
}

function close({ res, isReleased }: Held): void {
  if (isReleased || res._closed) return
  res.destroyed = true
  res._closed = true
  res.emit('close')
}

function settle(held: Held, end: CaptureEnd): void {
  held.end ??= end
  held.resolve(held.end)
}

/** Restores the response, and sends nothing. */
export function giveBack(held: Held): void {
  const { res, socket, unsent, hooks } = held
  takeOutput(held)
  held.isReleased = true
  held.streamed?.unwatch()
  res.outputSize = 0
  res._onPendingData = held.onPendingData
  if (Object.hasOwn(res, 'assignSocket')) Reflect.deleteProperty(res, 'assignSocket')
  if (hooks !== undefined || hasHooks(res)) restoreHooks(res, hooks ?? new Map())
  if (res.socket === socket) res.socket = socket.real
  if (!socket.isNested && socket.real !== null && Reflect.get(socket.real, '_httpMessage') === unsent)
    Reflect.set(socket.real, '_httpMessage', res)
  if (res.__onFinished !== held.sharedListener) res.__onFinished = held.sharedListener
  returnListeners(held)
  res.destroyed = unsent.destroyed
  res._closed = unsent._closed
  // A write after the end emits one. Without Latchkey the response would be closed by then, and ignore it.
  res.on('error', ignore)
  showRequest(held)
  socket.reveal()
}

/** The handler's listeners were called when the handler ended the response. What really happens is for the others. */
function returnListeners({ res, isFinished, unsent, listeners, own }: Held): void {
  const over = { finish: isFinished, close: res._closed }
  for (const event of ['finish', 'close'] as const) {
    res.removeListener(event, own[event])
    const inside = takeListeners(res, event)
    for (const listener of listeners[event]) res.on(event, listener)
    if (over[event]) continue
    if (event === 'close' && unsent._closed) process.nextTick(() => inside.forEach(one => Reflect.apply(one, res, [])))
    else for (const listener of inside) res.on(event, listener)
  }
}

function ignore(): void {}

/** Whether this Node holds a response back as the known versions do. Otherwise responses are captured as on HTTP/2. */
export const canHold: boolean = holdsBack()

function holdsBack(): boolean {
  try {
    const request = { method: 'POST', httpVersionMajor: 1, httpVersionMinor: 1, headers: {} }
    // The members that the constructor reads. The members of the port are what is checked here.
    const res = new ServerResponse(request as IncomingMessage) as unknown as Http1Response
    let bytes = 0
    res._onPendingData = added => (bytes += added)
    res.socket = new StandInSocket(null, { hijacked() {}, destroyed() {} })
    res.write('one')
    res.end('two')
    const isWhole = Buffer.from(bodySent(res, res.outputData)).toString() === 'onetwo'
    return isWhole && bytes === res.outputSize && needDrain in res && !res._closed && typeof res._flush === 'function'
  } catch {
    return false
  }
}
