/**
 * What stands between a held response and its connection. The handler sees a socket that is alive whatever the client does. The
 * server sees a response that is not finished, because none of it has been sent.
 */
import { EventEmitter } from 'node:events'
import { OutgoingMessage } from 'node:http'
import type { Http1Response, OutputEntry } from './driver.ts'

/** Where Node notes that a writer waits for 'drain'. */
export const needDrain: symbol =
  Object.getOwnPropertySymbols(new OutgoingMessage()).find(({ description }) => description === 'kNeedDrain') ??
  Symbol('latchkey: unknown')

type Method = (...args: unknown[]) => unknown

const behind: unique symbol = Symbol('latchkey: behind')

/**
 * Answers for a view what the view does not answer itself, from the object behind it. There is one for all views, at the end of their
 * prototypes: a proxy for each would cost every request, and most handlers never look at their socket.
 */
const readThrough: object = new Proxy(
  {},
  {
    get(_, name, view: { [behind]: object | null }) {
      const target = view[behind]
      if (target === null) return undefined
      const value: unknown = Reflect.get(target, name, target)
      // Called on the object itself, because methods check private state that a view does not have.
      return typeof value === 'function' ? (...args: unknown[]) => Reflect.apply(value, target, args) : value
    },
    set(_, name, value, view: { [behind]: object | null }) {
      return view[behind] !== null && Reflect.set(view[behind], name, value, view[behind])
    },
  },
)

export interface SocketUse {
  /** The handler wrote to the connection itself. */
  hijacked(): void
  destroyed(error: unknown): void
}

const uncorked = { corked: 0 }
const hiddenEvents = new Set(['close', 'end', 'error'])

/** The connection as the handler sees it. After `reveal` it is the real one, for code that has kept it. */
export class StandInSocket {
  [behind]: object | null
  readonly #use: SocketUse
  #isRevealed = false
  /** Made for the first listener. */
  #hidden: EventEmitter | undefined

  constructor(real: object | null, use: SocketUse) {
    this[behind] = real
    this.#use = use
  }

  get real(): object | null {
    return this[behind]
  }

  /** An operation runs inside another one's handler: behind this stand-in is the other one's. */
  get isNested(): boolean {
    return this.real instanceof StandInSocket
  }

  /** Past the handler, while the client is there. */
  writeReal({ data, encoding, callback }: OutputEntry): void {
    if (this.real !== null && Reflect.get(this.real, 'writable') === true)
      this.#call('write', [data, encoding, callback])
  }

  /** Outer code may have corked the connection, and counted on `end` to uncork it. */
  uncorkReal(): void {
    while (this.real !== null && Number(Reflect.get(this.real, 'writableCorked')) > 0) this.#call('uncork', [])
  }

  /** A response that was sent behind another one gets its connection late. */
  attach(real: object): void {
    this[behind] = real
  }

  reveal(): void {
    this.#isRevealed = true
    if (this.#hidden !== undefined && this.real !== null) moveListeners(this.#hidden, this.real)
  }

  #shown<T>(name: string, whileHeld: T): T {
    // The real socket has the same members, of the same types.
    return this.#isRevealed && this.real !== null ? (Reflect.get(this.real, name) as T) : whileHeld
  }

  #call(name: string, args: unknown[]): unknown {
    const { real } = this
    const method: unknown = real === null ? undefined : Reflect.get(real, name)
    return typeof method === 'function' ? Reflect.apply(method, real, args) : undefined
  }

  get destroyed(): boolean {
    return this.#shown('destroyed', false)
  }
  get closed(): boolean {
    return this.#shown('closed', false)
  }
  get errored(): unknown {
    return this.#shown('errored', null)
  }
  get _hadError(): boolean {
    return this.#shown('_hadError', false)
  }
  get writable(): boolean {
    return this.#shown('writable', true)
  }
  get readable(): boolean {
    return this.#shown('readable', true)
  }
  get writableLength(): number {
    return this.#shown('writableLength', 0)
  }
  get writableCorked(): number {
    return this.#shown('writableCorked', 0)
  }
  /** `end` uncorks a socket here. The real one must not hear of it. */
  get _writableState(): object {
    return this.#shown('_writableState', uncorked)
  }
  /** Node asks for it with every header. */
  get server(): unknown {
    return this.real === null ? undefined : Reflect.get(this.real, 'server')
  }

  cork(): void {
    if (this.#isRevealed) this.#call('cork', [])
  }
  uncork(): void {
    if (this.#isRevealed) this.#call('uncork', [])
  }
  write(...args: unknown[]): unknown {
    if (!this.#isRevealed) this.#use.hijacked()
    return this.#call('write', args)
  }
  end(...args: unknown[]): unknown {
    if (!this.#isRevealed) this.#use.hijacked()
    return this.#call('end', args)
  }
  destroy(error?: unknown): this {
    if (this.#isRevealed) this.#call('destroy', [error])
    else this.#use.destroyed(error)
    return this
  }
  destroySoon(): void {
    this.destroy()
  }
  resetAndDestroy(): this {
    return this.destroy()
  }

  on(event: unknown, listener: unknown): this {
    return this.#listen('on', event, listener)
  }
  addListener(event: unknown, listener: unknown): this {
    return this.#listen('addListener', event, listener)
  }
  once(event: unknown, listener: unknown): this {
    return this.#listen('once', event, listener)
  }
  prependListener(event: unknown, listener: unknown): this {
    return this.#listen('prependListener', event, listener)
  }
  prependOnceListener(event: unknown, listener: unknown): this {
    return this.#listen('prependOnceListener', event, listener)
  }
  off(event: unknown, listener: unknown): this {
    return this.removeListener(event, listener)
  }
  removeListener(event: unknown, listener: unknown): this {
    this.#call('removeListener', [event, listener])
    if (typeof event === 'string') this.#hidden?.removeListener(event, listener as Method) // the caller's own argument
    return this
  }

  #listen(
    name: 'on' | 'addListener' | 'once' | 'prependListener' | 'prependOnceListener',
    event: unknown,
    listener: unknown,
  ): this {
    if (this.#isRevealed || typeof event !== 'string' || !hiddenEvents.has(event)) this.#call(name, [event, listener])
    else (this.#hidden ??= new EventEmitter().setMaxListeners(0))[name](event, listener as Method) // the caller's own argument
    return this
  }
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
  [behind]: object
  readonly #outside: Outside
  readonly finished = false
  /** The handler is told by its capture. */
  readonly [needDrain] = false
  readonly _headerSent: boolean
  destroyed: boolean
  /** The connection has closed. */
  _closed: boolean

  constructor(res: Http1Response, outside: Outside) {
    this[behind] = res
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
Object.setPrototypeOf(UnsentResponse.prototype, readThrough)
