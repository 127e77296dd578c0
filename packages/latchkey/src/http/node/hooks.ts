/**
 * Methods that others have put in place of Node's own: outer middleware (compression, sessions) on the response itself, a test's
 * injected response in its class. The handler must not go through them, because what they make of its answer is for one client and
 * is not to be stored. They get the answer when it is released.
 */
import { ServerResponse } from 'node:http'

export type Hooks = ReadonlyMap<string, unknown>

// Read each time: tracing tools change it.
function plain(name: string): unknown {
  return Reflect.get(ServerResponse.prototype, name)
}

/** Node's methods instead; gives those that were the response's own. */
export function coverHooks(res: object): Hooks {
  const own = new Map<string, unknown>()
  // With those of its class.
  for (const name in res) {
    const method = plain(name)
    if (typeof method !== 'function' || method === Reflect.get(res, name)) continue
    if (Object.hasOwn(res, name)) own.set(name, Reflect.get(res, name))
    Reflect.set(res, name, method)
  }
  return own
}

/** Removes what was put on the response meanwhile, and puts back what was there before. */
export function restoreHooks(res: object, hooks: Hooks): void {
  for (const name of Object.keys(res)) if (typeof plain(name) === 'function') Reflect.deleteProperty(res, name)
  for (const [name, method] of hooks) Reflect.set(res, name, method)
}
