/**
 * Hides events of an emitter from listeners that are added while the veil is on. A handler that listens for the client's
 * disconnect must not hear it before it has finished: it would stop half-way, and the retry would find half the work.
 */
import { EventEmitter } from 'node:events'
import type { NodeEmitter } from './node-types.ts'

export interface Veil {
  /** Tells the hidden listeners only, and for good: the real event, when it comes, is not for them. */
  emitOnce(...events: string[]): void
  /** Ends the hiding: the listeners move to the real emitter, and hear at once what they missed. */
  lift(): void
}

type AnyListener = (...args: unknown[]) => void

const adders = ['on', 'addListener', 'once', 'prependListener', 'prependOnceListener'] as const
const removers = ['off', 'removeListener'] as const

export function veil(emitter: NodeEmitter, events: readonly string[]): Veil {
  const hidden = new EventEmitter({ captureRejections: false })
  hidden.setMaxListeners(0)
  const names = new Set(events)
  const missed = new Map<string, unknown[]>()
  const recorders = events.map(event => [event, (...args: unknown[]) => void missed.set(event, args)] as const)
  // Before the methods are replaced: these listen to the real events.
  for (const [event, record] of recorders) emitter.on(event, record)
  const restore = redirect(emitter, hidden, names)
  return {
    emitOnce(...once) {
      for (const event of once) {
        hidden.emit(event)
        hidden.removeAllListeners(event)
      }
    },
    lift() {
      restore()
      for (const [event, record] of recorders) emitter.removeListener(event, record)
      for (const event of events) {
        const args = missed.get(event)
        if (args === undefined) move(hidden, emitter, event)
        // An `error` without a listener would throw; one that was missed has nobody left to stop for it.
        else if (hidden.listenerCount(event) > 0) process.nextTick(() => hidden.emit(event, ...args))
      }
    },
  }
}

function move(hidden: EventEmitter, emitter: NodeEmitter, event: string): void {
  // Raw: a `once` wrapper keeps being one on the real emitter, since it removes itself from `hidden` and runs once only.
  for (const listener of hidden.rawListeners(event)) emitter.on(event, listener as AnyListener) // Node types it as Function
}

/** Own properties over the prototype's methods; deleting them gives the emitter back as it was. */
function redirect(emitter: NodeEmitter, hidden: EventEmitter, names: ReadonlySet<string>): () => void {
  const methods = [...adders, ...removers]
  // An emitter has all of these by name, and each takes an event and a listener.
  const real = emitter as unknown as Record<string, (event: string, listener: AnyListener) => unknown>
  const before = methods.map(name => [name, Object.getOwnPropertyDescriptor(real, name)] as const)
  for (const name of methods) {
    const original = real[name]
    const value = (event: string, listener: AnyListener): unknown => {
      if (names.has(event)) hidden[name](event, listener)
      // A listener that was added before the veil is removed from where it is.
      if (!names.has(event) || name === 'off' || name === 'removeListener') original?.call(emitter, event, listener)
      return emitter
    }
    Object.defineProperty(real, name, { value, configurable: true, writable: true, enumerable: false })
  }
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) delete real[name]
      else Object.defineProperty(real, name, descriptor)
    }
  }
}
