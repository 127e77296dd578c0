/** The type of a value after it was stored as JSON. */

/** What JSON leaves out of an object, and a handler may not return by itself. */
type Vanishing = undefined | symbol | AnyFunction

type AnyFunction = (...args: never[]) => unknown

/** `object` alone would know none of the members that a literal has. */
type AnyObject = object | { readonly [name: string]: unknown }

/** Every function has the first member, every promise the second, and data neither. */
interface Data {
  readonly [Symbol.hasInstance]?: never
  readonly then?: never
}

/**
 * A value that JSON can carry: no function, no symbol and no bigint. Undefined is stored as such. Where the type of a value is `unknown`, such as
 * what `response.json()` returns, say what it is, or `as Storable`.
 */
export type Storable = string | number | boolean | null | undefined | void | (AnyObject & Data)

/**
 * What a caller gets of a `T`, the first one as well as a retry: a `Date` is its text, what has `toJSON` is what that returns, members that are
 * undefined, functions or symbols are gone, and so are the entries of a `Map` or a `Set`. An instance of a class is taken for its fields.
 */
export type JsonOf<T> =
  IsAny<T> extends true
    ? T
    : T extends { toJSON(key: string): infer J }
      ? JsonOf<J>
      : T extends string | number | boolean | null
        ? T
        : T extends undefined | void
          ? undefined
          : T extends bigint | symbol | AnyFunction
            ? never
            : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
              ? Record<string, never>
              : T extends readonly unknown[]
                ? { -readonly [I in keyof T]: Element<T[I]> }
                : T extends object
                  ? Flat<Members<T>>
                  : T

type IsAny<T> = 0 extends 1 & T ? true : false

/** In a list nothing may be left out: null stands for it. */
type Element<T> = JsonOf<Exclude<T, Vanishing>> | (Extract<T, Vanishing> extends never ? never : null)

/** Members that are always there, and those that may be gone. */
type Members<T> = { -readonly [K in keyof T as Kept<T, K>]: JsonOf<T[K]> } & {
  -readonly [K in keyof T as MayVanish<T, K>]?: JsonOf<Exclude<T[K], Vanishing>>
}

type Kept<T, K extends keyof T> = K extends symbol
  ? never
  : IsAny<T[K]> extends true
    ? K
    : [Extract<T[K], Vanishing>] extends [never]
      ? K
      : never

type MayVanish<T, K extends keyof T> = K extends symbol | Kept<T, K>
  ? never
  : [Exclude<T[K], Vanishing>] extends [never]
    ? never
    : K

/** One object instead of two that are joined, which is what editors show. */
type Flat<T> = { [K in keyof T]: T[K] }
