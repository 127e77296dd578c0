/** Members laid over an object's own, and taken away again. */

/** Called on the object it was laid over. */
export type Method = (this: never, ...args: never[]) => unknown

export type Overlay = readonly (readonly [name: string, descriptor: PropertyDescriptor])[]

export interface Laid {
  readonly overlay: Overlay
  /** The object's own members of these names, which come back. */
  readonly covered: Map<string, PropertyDescriptor>
}

/** A value that is read through `get`, and written through `set` where that is possible. */
export interface Value {
  get(this: never): unknown
  set?(this: never, value: unknown): void
}

export function overlay(methods: Readonly<Record<string, Method>>, values: Readonly<Record<string, Value>>): Overlay {
  return [
    ...Object.entries(methods).map(([name, value]) => [name, { ...shared, writable: true, value }] as const),
    ...Object.entries(values).map(([name, { get, set = () => {} }]) => [name, { ...shared, get, set }] as const),
  ]
}

const shared = { configurable: true, enumerable: false }

/** Members that the object does not have are left out. */
export function lay(target: object, overlay: Overlay): Laid {
  const covered = new Map<string, PropertyDescriptor>()
  for (const [name, descriptor] of overlay) {
    if (!(name in target)) continue
    const own = Object.getOwnPropertyDescriptor(target, name)
    if (own !== undefined) covered.set(name, own)
    Object.defineProperty(target, name, descriptor)
  }
  return { overlay, covered }
}

/** Members that others have put over these meanwhile are removed with them. */
export function takeAway(target: object, { overlay, covered }: Laid): void {
  for (const [name] of overlay) Reflect.deleteProperty(target, name)
  for (const [name, descriptor] of covered) Object.defineProperty(target, name, descriptor)
}

/** Calls with the object's own members in their places. The members that cover them, whichever code put them there, come back. */
export function lift<T>(target: object, { overlay, covered }: Laid, call: () => T): T {
  const over = overlay.map(([name]) => [name, Object.getOwnPropertyDescriptor(target, name)] as const)
  takeAway(target, { overlay, covered })
  try {
    return call()
  } finally {
    for (const [name, descriptor] of over) {
      if (descriptor === undefined) continue
      const own = Object.getOwnPropertyDescriptor(target, name)
      if (own === undefined) covered.delete(name)
      else covered.set(name, own)
      Object.defineProperty(target, name, descriptor)
    }
  }
}

/** The method underneath. */
export function callUnder(
  target: object,
  { covered }: Laid,
  [name, args]: readonly [string, readonly unknown[]],
): unknown {
  const own = covered.get(name)
  const method: unknown = own === undefined ? Reflect.get(Object.getPrototypeOf(target) as object, name) : own.value
  return typeof method === 'function' ? Reflect.apply(method, target, args) : undefined
}
