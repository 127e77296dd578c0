/** A request or a response under an overlay: where its state is kept, and how the real thing is reached. */
import type { HiddenSocket } from './hide-disconnect/socket.ts'
import type { NodeEmitter } from './driver.ts'
import { callUnder, type Laid } from './overlay.ts'
import { tellOutside, type Veil } from './hide-disconnect/events.ts'

/** Where an object keeps the state of its overlay. */
export const state: unique symbol = Symbol('latchkey')

export interface Covered<Target extends NodeEmitter = NodeEmitter> {
  readonly target: Target
  readonly veil: Veil
  readonly laid: Laid
  /** The overlay below this one: an operation inside another one's handler. */
  readonly outer: Covered | undefined
}

/** A method as it was before the overlay. */
export function under(covered: Covered, name: string, args: readonly unknown[]): unknown {
  const { target, laid, outer } = covered
  if (outer === undefined) return callUnder(target, laid, [name, args])
  // The method below is one of these too, and has to find its own state.
  Reflect.set(target, state, outer)
  try {
    return callUnder(target, laid, [name, args])
  } finally {
    Reflect.set(target, state, covered)
  }
}

/** `emit` of a covered object: those outside hear hidden events, too. True if somebody heard it. */
export function emitCovered(covered: Covered, event: string, args: readonly unknown[]): boolean {
  const { veil } = covered
  const tell = () => under(covered, 'emit', [event, ...args]) === true
  return veil.events.includes(event) ? tellOutside(veil, event, { args, tell }) : tell()
}

interface WithSocket {
  socket?: unknown
}

/** Puts the stand-in where the socket is; gives the way back. HTTP/2 has a stand-in of its own there. */
export function coverSocket(target: WithSocket, hidden: HiddenSocket): () => void {
  if (!Object.hasOwn(target, 'socket')) return () => {}
  const real = target.socket
  if (typeof real !== 'object' || real === null) return awaitSocket(target, hidden)
  const standIn = hidden.of(real)
  target.socket = standIn
  return () => {
    if (target.socket === standIn) target.socket = real
  }
}

/** A request that was sent before the one ahead of it was answered gets its socket when its turn comes. */
function awaitSocket(target: WithSocket, hidden: HiddenSocket): () => void {
  let real = target.socket
  Object.defineProperty(target, 'socket', {
    configurable: true,
    enumerable: true,
    get: () => hidden.of(real),
    set(value: unknown) {
      real = value
    },
  })
  return () =>
    Object.defineProperty(target, 'socket', { configurable: true, enumerable: true, writable: true, value: real })
}

/**
 * Where `on-finished`, which Koa and Express's `sendFile` use, keeps one listener for all who ask. Were it shared with those who
 * asked before the capture, the handler's part would hear of the client's disconnect with them, and destroy its streams.
 */
const sharedListener = '__onFinished'

/** Hides it; gives the way back. */
export function coverSharedListener(target: object): () => void {
  const own = Object.getOwnPropertyDescriptor(target, sharedListener)
  if (own !== undefined) Object.defineProperty(target, sharedListener, { ...own, value: undefined })
  return () => {
    if (own !== undefined) Object.defineProperty(target, sharedListener, own)
    else if (Object.hasOwn(target, sharedListener)) Reflect.deleteProperty(target, sharedListener)
  }
}
