/** Own properties laid over an object's, and taken away again. */

export interface Overrides {
  method(name: string, value: (...args: never[]) => unknown): void
  /** A property that reads as `get()`; what others write to it meanwhile is kept and is there afterwards. */
  value(name: string, get: (underneath: () => unknown) => unknown): void
  /** A property as if nobody had set it; what is set meanwhile goes away again. */
  hide(name: string): void
  /** The method as it was when the overrides began. */
  original(name: string): ((...args: unknown[]) => unknown) | undefined
  restore(): void
}

export function overrides(target: object): Overrides {
  // Reached by name: which names exist differs between http, http2 and Node versions.
  const members = target as Record<string, unknown>
  const restores: (() => void)[] = []
  const originals = new Map<string, unknown>()
  const lay = (name: string, value: unknown) => {
    const own = Object.getOwnPropertyDescriptor(members, name)
    Object.defineProperty(members, name, { configurable: true, enumerable: false, value, writable: true })
    restores.push(() => {
      if (own === undefined) delete members[name]
      else Object.defineProperty(members, name, own)
    })
  }
  return {
    method(name, value) {
      originals.set(name, members[name])
      lay(name, value)
    },
    hide: name => lay(name, undefined),
    value(name, get) {
      const own = Object.getOwnPropertyDescriptor(members, name)
      const isData = own !== undefined && 'value' in own
      let underneath: unknown = isData ? own.value : undefined
      // The prototypes are searched when somebody asks: most values here are our own.
      const read = () => (isData ? underneath : (own?.get ?? inheritedGetter(members, name))?.call(members))
      Object.defineProperty(members, name, {
        configurable: true,
        enumerable: false,
        get: () => get(read),
        set(value: unknown) {
          underneath = value
        },
      })
      restores.push(() => {
        delete members[name]
        if (isData) Object.defineProperty(members, name, { ...own, value: underneath })
        else if (own !== undefined) Object.defineProperty(members, name, own)
      })
    },
    original(name) {
      const value = originals.has(name) ? originals.get(name) : members[name]
      if (typeof value !== 'function') return undefined
      return (...args) => Reflect.apply(value, members, args)
    },
    restore() {
      // Backwards, so that a name overridden twice ends as it began.
      for (const restore of restores.splice(0).reverse()) restore()
    },
  }
}

function inheritedGetter(target: object, name: string): (() => unknown) | undefined {
  for (let proto: unknown = Object.getPrototypeOf(target); proto !== null; proto = Object.getPrototypeOf(proto)) {
    // Every value of a prototype chain but its end is an object.
    const descriptor = Object.getOwnPropertyDescriptor(proto as object, name)
    if (descriptor !== undefined) return descriptor.get
  }
  return undefined
}
