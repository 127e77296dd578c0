/** The connection as the handler sees it: alive until the handler has ended, whatever the client does. */
import { EventEmitter } from 'node:events'

export interface HiddenSocket {
  /** Stands in for this socket. The same stand-in for the same socket, so that `req.socket === res.socket` holds. */
  of(socket: unknown): unknown
  /** From now on the stand-ins are transparent. */
  reveal(): void
}

export interface SocketUse {
  /** The handler wrote to the connection itself. */
  hijacked(): void
  destroyed(error: unknown): void
}

const aliveAs: Readonly<Record<string, unknown>> = { destroyed: false, closed: false, writable: true, readable: true }
const hiddenEvents = new Set(['close', 'end', 'error'])
const adders = new Set(['on', 'addListener', 'once', 'prependListener', 'prependOnceListener'])
const removers = new Set(['off', 'removeListener'])

type Method = (...args: unknown[]) => unknown

export function hiddenSocket(use: SocketUse): HiddenSocket {
  const standIns: StandIn[] = []
  let revealed = false
  return {
    of(socket) {
      if (revealed || typeof socket !== 'object' || socket === null) return socket
      const known = standIns.find(one => one.socket === socket)
      if (known !== undefined) return known.proxy
      const made: StandIn = { socket, proxy: socket, hidden: undefined }
      made.proxy = new Proxy(socket, trapsOf(made, { use, isRevealed: () => revealed }))
      standIns.push(made)
      return made.proxy
    },
    reveal() {
      revealed = true
      for (const { socket, hidden } of standIns) if (hidden !== undefined) giveListeners(hidden, socket)
    },
  }
}

interface StandIn {
  readonly socket: object
  proxy: object
  /** Made for the first listener: most handlers never look at the socket. */
  hidden: EventEmitter | undefined
}

interface Hiding {
  readonly use: SocketUse
  isRevealed(): boolean
}

function trapsOf(standIn: StandIn, { use, isRevealed }: Hiding): ProxyHandler<object> {
  const { socket } = standIn
  const read = (name: string | symbol): unknown => {
    const value: unknown = Reflect.get(socket, name, socket)
    return typeof value === 'function' ? bound(value as Method, socket) : value // typeof says it can be called
  }
  return {
    // Reads and writes go to the socket itself: its methods check private state that a proxy does not have.
    set: (target, name, value) => Reflect.set(target, name, value, target),
    get(_, name) {
      if (typeof name === 'symbol' || isRevealed()) return read(name)
      if (name in aliveAs) return aliveAs[name]
      if (adders.has(name) || removers.has(name)) return listening(standIn, name)
      if (name === 'write' || name === 'end') return before(use.hijacked, read(name))
      if (name === 'destroy' || name === 'destroySoon' || name === 'resetAndDestroy') {
        return (error?: unknown) => use.destroyed(error)
      }
      return read(name)
    },
  }
}

function bound(method: Method, socket: object): Method {
  return (...args) => Reflect.apply(method, socket, args)
}

function before(tell: () => void, method: unknown): Method {
  return (...args) => {
    tell()
    return typeof method === 'function' ? Reflect.apply(method, undefined, args) : undefined
  }
}

function listening(standIn: StandIn, name: string): Method {
  const { socket } = standIn
  return (event, listener) => {
    const hides = typeof event === 'string' && hiddenEvents.has(event)
    const hidden = (standIn.hidden ??= new EventEmitter().setMaxListeners(0))
    if (hides) Reflect.apply(Reflect.get(hidden, name) as Method, hidden, [event, listener]) // an emitter's own method
    if (!hides || removers.has(name)) Reflect.apply(Reflect.get(socket, name) as Method, socket, [event, listener]) // likewise
    return socket
  }
}

function giveListeners(hidden: EventEmitter, socket: object): void {
  const gone = Reflect.get(socket, 'destroyed') === true
  if (gone) {
    if (hidden.listenerCount('close') > 0) process.nextTick(() => hidden.emit('close'))
    return
  }
  // Sockets are emitters; the port types them as objects because http2 and tls differ in everything else.
  const emitter = socket as EventEmitter
  for (const event of hiddenEvents) {
    for (const listener of hidden.rawListeners(event)) emitter.on(event, listener as Method) // Node types it as Function
  }
}
