/**
 * What stands between a held response and its connection. The handler sees a socket that is alive whatever the client does. The
 * server sees a response that is not finished, because none of it has been sent.
 */
import { EventEmitter } from 'node:events'
import { OutgoingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Http1Response, Listener, OutputEntry } from './driver.ts'
import type { Held } from './held-response.ts'

/** Where Node notes that a writer waits for 'drain'. */
export const needDrain: symbol =
  Object.getOwnPropertySymbols(new OutgoingMessage()).find(({ description }) => description === 'kNeedDrain') ??
  Symbol('latchkey: unknown')

type Method = (...args: unknown[]) => unknown

interface View {
  readonly _behind: object | null
}

/**
 * Answers for a view what the view does not answer itself, from the object behind it. There is one for all views, at the end of their
 * prototypes: a proxy for each would cost every request, and most handlers never look at their socket.
 */
const readThrough: object = new Proxy(
  {},
  {
    get(_, name, view: View) {
      const target = view._behind
      if (target === null) return undefined
      const value: unknown = Reflect.get(target, name, target)
      // Called on the object itself, because methods check private state that a view does not have.
      return typeof value === 'function' ? (...args: unknown[]) => Reflect.apply(value, target, args) : value
    },
    set(_, name, value, view: View) {
      return view._behind !== null && Reflect.set(view._behind, name, value, view._behind)
    },
  },
)

export interface SocketUse {
  /** The handler wrote to the connection itself. */
  hijacked(): void
  destroyed(error: unknown): void
}

const hiddenEvents = new Set(['close', 'end', 'error'])

interface StandInState {
  readonly use: SocketUse
  isRevealed: boolean
  /** Made for the first listener. */
  hidden: EventEmitter | undefined
}

/** The connection as the handler sees it. After `reveal` it is the real one, for code that has kept it. */
export class StandInSocket {
  _behind: object | null
  readonly _standIn: StandInState

  constructor(real: object | null, use: SocketUse) {
    this._behind = real
    this._standIn = { use, isRevealed: false, hidden: undefined }
  }

  get real(): object | null {
    return this._behind
  }
  /** An operation runs inside another one's handler: behind this stand-in is the other one's. */
  get isNested(): boolean {
    return this.real instanceof StandInSocket
  }
  /** Node asks for it with every header. */
  get server(): unknown {
    return this.real === null ? undefined : Reflect.get(this.real, 'server')
  }

  /** A response that was sent behind another one gets its connection late. */
  attach(real: object): void {
    this._behind = real
  }
  /** Past the handler, while the client is there. */
  writeReal({ data, encoding, callback }: OutputEntry): void {
    if (isOpen(this.real)) callReal(this, 'write', [data, encoding, callback])
  }
  /** Drops them where the client has left, which the writer does not learn. */
  writeAllReal(entries: readonly OutputEntry[]): void {
    const hasClient = isOpen(this.real)
    if (hasClient) callReal(this, 'cork', [])
    for (const { data, encoding, callback } of entries) {
      const written = () => callback?.()
      if (hasClient) callReal(this, 'write', [data, encoding, written])
      else if (typeof callback === 'function') process.nextTick(written)
    }
    this.uncorkReal()
  }
  get isRealFull(): boolean {
    return this.real !== null && Reflect.get(this.real, 'writableNeedDrain') === true
  }
  get isRealGone(): boolean {
    return this.real !== null && Reflect.get(this.real, 'destroyed') === true
  }
  /** Returns what ends it. */
  watchReal({ drained, closed }: { drained(): void; closed(): void }): () => void {
    const { real } = this
    const listeners = { drain: drained, close: closed }
    for (const [event, listener] of Object.entries(listeners)) callReal(this, 'on', [event, listener])
    return () => {
      for (const [event, listener] of Object.entries(listeners)) {
        if (real !== null) (real as EventEmitter).removeListener(event, listener) // a socket
      }
    }
  }
  /** Cuts the connection so that its end is not taken for the end of the answer. TLS has its own way to tell. */
  resetReal(): void {
    if (this.real instanceof Socket && !('encrypted' in this.real)) this.real.resetAndDestroy()
  }
  /** Outer code may have corked the connection, and counted on `end` to uncork it. */
  uncorkReal(): void {
    while (this.real !== null && Number(Reflect.get(this.real, 'writableCorked')) > 0) callReal(this, 'uncork', [])
  }
  reveal(): void {
    const { hidden, isRevealed } = this._standIn
    if (isRevealed) return
    this._standIn.isRevealed = true
    if (hidden !== undefined && this.real !== null) moveListeners(hidden, this.real)
  }

  removeListener(event: string, listener: Method): this {
    callReal(this, 'removeListener', [event, listener])
    this._standIn.hidden?.removeListener(event, listener)
    return this
  }
  off(event: string, listener: Method): this {
    return this.removeListener(event, listener)
  }
}

function isOpen(real: object | null): boolean {
  return real !== null && Reflect.get(real, 'writable') === true
}

function callReal({ real }: StandInSocket, name: string, args: readonly unknown[]): unknown {
  const method: unknown = real === null ? undefined : Reflect.get(real, name)
  return typeof method === 'function' ? Reflect.apply(method, real, args) : undefined
}

/** What the handler reads while the response is held. Nothing that Node does to it reaches the real socket. */
const shown: Readonly<Record<string, unknown>> = {
  ...{ destroyed: false, closed: false, errored: null, _hadError: false, writable: true, readable: true },
  ...{ writableLength: 0, writableCorked: 0, _writableState: { corked: 0 }, cork() {}, uncork() {} },
}
for (const [name, value] of Object.entries(shown)) {
  Object.defineProperty(StandInSocket.prototype, name, {
    get(this: StandInSocket): unknown {
      return this._standIn.isRevealed ? Reflect.get(readThrough, name, this) : value
    },
  })
}

for (const name of ['on', 'addListener', 'once', 'prependListener', 'prependOnceListener'] as const) {
  defineMethod(name, (socket, [event, listener]) => {
    if (!hiddenEvents.has(String(event))) callReal(socket, name, [event, listener])
    // The caller's own arguments.
    else (socket._standIn.hidden ??= new EventEmitter().setMaxListeners(0))[name](String(event), listener as Method)
    return socket
  })
}
for (const name of ['write', 'end']) {
  defineMethod(name, (socket, args) => {
    socket._standIn.use.hijacked()
    return callReal(socket, name, args)
  })
}
for (const name of ['destroy', 'destroySoon', 'resetAndDestroy']) {
  defineMethod(name, (socket, [error]) => {
    socket._standIn.use.destroyed(error)
    return socket
  })
}

function defineMethod(name: string, whileHeld: (socket: StandInSocket, args: readonly unknown[]) => unknown): void {
  Object.defineProperty(StandInSocket.prototype, name, {
    value(this: StandInSocket, ...args: unknown[]): unknown {
      return this._standIn.isRevealed ? callReal(this, name, args) : whileHeld(this, args)
    },
  })
}
Object.setPrototypeOf(StandInSocket.prototype, readThrough)

function moveListeners(hidden: EventEmitter, socket: object): void {
  if (Reflect.get(socket, 'destroyed') === true) {
    if (hidden.listenerCount('close') > 0) process.nextTick(() => hidden.emit('close'))
    return
  }
  const emitter = socket as EventEmitter // sockets are; the port types them as objects because tls and http2 differ in the rest
  for (const event of hiddenEvents) {
    for (const listener of hidden.rawListeners(event)) emitter.on(event, listener as Method) // Node types it as Function
  }
}

export interface Outside {
  /** Tells the listeners outside the capture. True if there was one. */
  emit(event: string, args: readonly unknown[]): boolean
  /** Node gives the response its connection. */
  assigned(socket: object): void
}

/** A held response as the server sees it: Node asks the connection for its response when the connection closes, idles or times out. */
export class UnsentResponse {
  readonly _behind: object
  readonly #outside: Outside
  readonly finished = false
  readonly _headerSent: boolean
  destroyed: boolean
  /** The connection has closed. */
  _closed: boolean

  constructor(res: Http1Response, outside: Outside) {
    this._behind = res
    this.#outside = outside
    this._headerSent = res._header !== null
    this.destroyed = res.destroyed
    this._closed = res._closed
  }

  emit(event: string, ...args: unknown[]): boolean {
    return this.#outside.emit(event, args)
  }
  set socket(socket: object) {
    this.#outside.assigned(socket)
  }
  /** Node calls it after it has assigned a socket. */
  _flush(): void {}
}
// The capture tells the handler.
Object.defineProperty(UnsentResponse.prototype, needDrain, { value: false })
Object.setPrototypeOf(UnsentResponse.prototype, readThrough)

/* What a handler does to its response while that is held: it writes, waits for room, and listens. */

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
