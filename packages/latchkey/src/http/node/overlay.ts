/**
 * Members laid over an object's own, and taken away again.
 *
 * They are the same functions for every object, and find what they belong to on the object itself: closures of each request's own
 * would give each response a shape of its own, and the runtime would look up every member of it the slow way.
 */

/** Called on the object it was laid over. */
export type Method = (this: never, ...args: never[]) => unknown

export interface Overlay {
  readonly methods: readonly (readonly [name: string, value: Method])[]
  readonly flags: readonly (readonly [name: string, descriptor: PropertyDescriptor])[]
  /** Which of them an object of this kind has. There are few kinds: one per version of HTTP, and those of Express's applications. */
  readonly byPrototype: WeakMap<object, Members>
}

interface Members {
  readonly methods: Overlay['methods']
  readonly flags: Overlay['flags']
  /** All names, in the order in which they leave. */
  readonly leaving: readonly string[]
}

/** What was laid where. */
export interface Laid {
  readonly members: Members
  /** The object's own members of these names, which come back. */
  readonly covered: ReadonlyMap<string, PropertyDescriptor> | undefined
}

/** Methods that an object does not have are left out, and so are flags. What is written to a flag meanwhile is ignored. */
export function overlay(
  methods: Readonly<Record<string, Method>>,
  flags: Readonly<Record<string, (this: never) => unknown>>,
): Overlay {
  return {
    methods: Object.entries(methods),
    flags: Object.entries(flags).map(([name, get]) => [name, { configurable: true, enumerable: false, get, set() {} }]),
    byPrototype: new WeakMap(),
  }
}

export function lay(target: object, what: Overlay): Laid {
  if (isOfItsOwnKind(target)) loosen(target)
  const members = membersOf(target, what)
  const record = target as Record<string, unknown> // reached by name
  let covered: Map<string, PropertyDescriptor> | undefined
  const cover = (name: string) => {
    const own = Object.getOwnPropertyDescriptor(target, name)
    if (own !== undefined) (covered ??= new Map<string, PropertyDescriptor>()).set(name, own)
  }
  for (const [name, value] of members.methods) {
    if (Object.hasOwn(target, name)) cover(name)
    record[name] = value
  }
  for (const [name, descriptor] of members.flags) {
    if (Object.hasOwn(target, name)) cover(name)
    Object.defineProperty(target, name, descriptor)
  }
  return { members, covered }
}

/** Also what others laid over these names meanwhile goes away. */
export function takeAway(target: object, { members, covered }: Laid): void {
  const record = target as Record<string, unknown> // reached by name
  for (const name of members.leaving) delete record[name]
  if (covered === undefined) return
  for (const [name, descriptor] of covered) Object.defineProperty(target, name, descriptor)
}

/** The method underneath. */
export function callUnder(
  target: object,
  { covered }: Laid,
  [name, args]: readonly [string, readonly unknown[]],
): unknown {
  const own = covered?.get(name)
  const method: unknown = own === undefined ? Reflect.get(Object.getPrototypeOf(target) as object, name) : own.value
  return typeof method === 'function' ? Reflect.apply(method, target, args) : undefined
}

/**
 * Express gives every request and response its prototype by hand. From then on the runtime takes each for a kind of its own, of
 * which every member more makes another one.
 */
function isOfItsOwnKind(target: object): boolean {
  // The prototype of a class, and of a constructor function, names it.
  return !Object.hasOwn(Object.getPrototypeOf(target) as object, 'constructor')
}

/** A member that leaves from between others turns the object into a table, which members can join and leave at no such price. */
function loosen(target: { [between]?: unknown; [last]?: unknown }): void {
  target[between] = undefined
  target[last] = undefined
  delete target[between]
  delete target[last]
}

const between: unique symbol = Symbol('between')
const last: unique symbol = Symbol('last')

function membersOf(target: object, { methods, flags, byPrototype }: Overlay): Members {
  const prototype = Object.getPrototypeOf(target) as object // every object with methods has one
  const known = byPrototype.get(prototype)
  if (known !== undefined) return known
  const has = ([name]: readonly [name: string, ...unknown[]]) => name in target
  // Backwards: when the member that was added last leaves, the object has the shape again that it had before.
  const [ownMethods, ownFlags] = [methods.filter(has), flags.filter(has)]
  const leaving = [...ownMethods, ...ownFlags].map(([name]) => name).toReversed()
  const members = { methods: ownMethods, flags: ownFlags, leaving }
  byPrototype.set(prototype, members)
  return members
}
