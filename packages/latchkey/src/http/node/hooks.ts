/**
 * Methods that others have put in place of Node's own: outer middleware (compression, sessions) on the response itself, a test's
 * injected response in its class. The handler must not go through them, because what they make of its answer is for one client and
 * is not to be stored. They get the answer when it is released, or what the handler writes from the moment on that it streams.
 */
import { ServerResponse } from 'node:http'

export type Hooks = ReadonlyMap<string, unknown>

const inUse: unique symbol = Symbol('latchkey: hooks in use')

interface Covered {
  [inUse]?: Hooks
}

// Read each time: tracing tools change it.
function plain(name: string): unknown {
  return Reflect.get(ServerResponse.prototype, name)
}

/** One for each name. Inner middleware may have kept them, so they lead to the hooks once those are in use. */
const covers = new Map<string, (this: Covered, ...args: unknown[]) => unknown>()

function coverOf(name: string): unknown {
  const known = covers.get(name)
  if (known !== undefined) return known
  const cover = function (this: Covered, ...args: unknown[]): unknown {
    return callHook(this, [name, args])
  }
  covers.set(name, cover)
  return cover
}

/** The hook, if hooks are in use; Node's own method otherwise. */
export function callHook(
  res: object & Covered,
  [name, args]: readonly [name: string, args: readonly unknown[]],
): unknown {
  const method = res[inUse]?.get(name) ?? plain(name)
  return typeof method === 'function' ? Reflect.apply(method, res, args) : undefined
}

/** Node's methods instead; gives those that were the response's own. */
export function coverHooks(res: object): Hooks {
  const own = new Map<string, unknown>()
  // With those of its class.
  for (const name in res) {
    const method = plain(name)
    if (typeof method !== 'function' || method === Reflect.get(res, name)) continue
    if (Object.hasOwn(res, name)) own.set(name, Reflect.get(res, name))
    Reflect.set(res, name, coverOf(name))
  }
  return own
}

/** From now on the handler calls the hooks, and what it has put over them stays. */
export function useHooks(res: object & Covered, own: Hooks): void {
  const ofClass = Object.getPrototypeOf(res) as object
  res[inUse] = new Map([...covers.keys()].map(name => [name, own.get(name) ?? Reflect.get(ofClass, name)]))
}

/** Removes what was put on the response meanwhile, and puts back what was there before. */
export function restoreHooks(res: object, hooks: Hooks): void {
  for (const name of Object.keys(res)) if (typeof plain(name) === 'function') Reflect.deleteProperty(res, name)
  for (const [name, method] of hooks) Reflect.set(res, name, method)
}
