/**
 * Hides events of an emitter from listeners that are added while the veil is on. A handler that listens for the client's
 * disconnect must not hear it before it has finished: it would stop half-way, and the retry would find half the work.
 */
import type { Listener, NodeEmitter } from '../driver.ts'

export interface Veil {
  readonly emitter: NodeEmitter
  readonly events: readonly string[]
  /** By event, who listened before: they hear what really happens when it happens. */
  readonly outer: readonly (readonly Listener[])[]
  /** What really happened meanwhile, with what it carried. */
  missed: Map<string, readonly unknown[]> | undefined
}

export function veil(emitter: NodeEmitter, events: readonly string[]): Veil {
  return { emitter, events, outer: events.map(event => listenersOf(emitter, event)), missed: undefined }
}

/** A hidden event comes: `tell`, the emitter's own way, reaches those outside only. */
export function tellOutside(veil: Veil, event: string, { args, tell }: Real): boolean {
  const { emitter } = veil
  const hidden = innerListeners(veil, event)
  for (const listener of hidden) emitter.removeListener(event, listener)
  veil.missed ??= new Map()
  veil.missed.set(event, args)
  try {
    // An `error` without a listener would throw: those inside hear of it later.
    return event === 'error' && emitter.listenerCount('error') === 0 ? false : tell()
  } finally {
    // Raw: a `once` wrapper keeps being one, since it runs once only.
    for (const listener of hidden) emitter.on(event, listener)
  }
}

interface Real {
  readonly args: readonly unknown[]
  tell(): boolean
}

/** Tells the hidden listeners only, and for good: the real event, when it comes, is not for them. */
export function tellInside(veil: Veil, event: string): void {
  const hidden = innerListeners(veil, event)
  for (const listener of hidden) veil.emitter.removeListener(event, listener)
  callAll(veil.emitter, hidden, [])
}

/** Ends the hiding: the listeners stay, and hear at once what they missed. The emitter's own `emit` must be back. */
export function liftVeil(veil: Veil): void {
  if (veil.missed === undefined) return
  const { emitter } = veil
  for (const [event, args] of veil.missed) {
    const hidden = innerListeners(veil, event)
    for (const listener of hidden) emitter.removeListener(event, listener)
    if (hidden.length > 0) process.nextTick(() => callAll(emitter, hidden, args))
  }
}

function callAll(emitter: NodeEmitter, listeners: readonly Listener[], args: readonly unknown[]): void {
  for (const listener of listeners) Reflect.apply(listener, emitter, args)
}

/** The same function may listen outside and inside. */
function innerListeners({ emitter, events, outer }: Veil, event: string): Listener[] {
  const now = listenersOf(emitter, event)
  const outside = [...(outer[events.indexOf(event)] ?? [])]
  return now.filter(listener => {
    const at = outside.indexOf(listener)
    if (at >= 0) outside.splice(at, 1)
    return at < 0
  })
}

function listenersOf(emitter: NodeEmitter, event: string): readonly Listener[] {
  return emitter.rawListeners(event) as Listener[] // Node types them as any function
}
