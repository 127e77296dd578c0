/** The kinds of options there are. */
import type { Check, Checks } from './check-options.ts'

/** setTimeout counts in 31 bits; a longer delay fires at once. */
const timerMsMax = 2 ** 31 - 1
/** What is stored as a time: a century from now is a date in every database. */
const storedMsMax = 100 * 366 * 24 * 3_600_000
/** What one buffer holds on every platform. */
const bytesMax = 2 ** 31 - 1
/** Of rows, calls and waiters: more than a process can have. */
const countMax = 1_000_000

export const flag: Check = { wants: 'true or false', fits: value => typeof value === 'boolean' }
export const text: Check = { wants: 'a text', fits: value => typeof value === 'string' && value !== '' }
export const callable: Check = { wants: 'a function', fits: value => typeof value === 'function' }
export const pattern: Check = { wants: 'a regular expression', fits: value => value instanceof RegExp }
/** Of any kind: checked elsewhere, or passed on as it is. */
export const anything: Check = { wants: 'given', fits: () => true }

/** Waited for by a timer. */
export const waitedMs: Check = durationUpTo(timerMsMax, '24 days, the longest that a timer lasts')
/** Added to a time that is stored. */
export const storedMs: Check = durationUpTo(storedMsMax, '100 years')
export const byteCount: Check = wholeUpTo(bytesMax)
export const count: Check = wholeUpTo(countMax)

export function durationUpTo(max: number, inWords: string): Check {
  return {
    wants: `a number above 0 and at most ${max} ms, ${inWords}`,
    fits: value => typeof value === 'number' && value > 0 && value <= max,
  }
}

export function wholeUpTo(max: number): Check {
  return {
    wants: `a whole number from 1 to ${max}`,
    fits: value => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max,
  }
}

export function oneOf(...words: readonly string[]): Check {
  const quoted = words.map(word => `'${word}'`)
  const last = quoted.at(-1) ?? ''
  const wants = quoted.length < 2 ? last : `${quoted.slice(0, -1).join(', ')} or ${last}`
  return { wants, words, fits: value => typeof value === 'string' && words.includes(value) }
}

export function listOf(each: Check): Check {
  return { wants: 'a list', fits: value => Array.isArray(value), each }
}

/** An object by its methods: a store, a clock, a pool. */
export function having(what: string, ...methods: readonly string[]): Check {
  return {
    wants: `${what} with ${methods.join(', ')}`,
    fits: value =>
      typeof value === 'object' &&
      value !== null &&
      methods.every(method => typeof Reflect.get(value, method) === 'function'),
  }
}

/** An object of options. */
export function nested(members: Checks): Check {
  return { wants: 'an object of options', fits: isPlainObject, members }
}

/** Under names of the application's own, such as headers or topics. */
export function recordOf(each: Check): Check {
  return { wants: 'an object', fits: isPlainObject, each }
}

export function either(first: Check, second: Check): Check {
  return {
    ...first,
    ...second,
    wants: `${first.wants}, or ${second.wants}`,
    fits: value => first.fits(value) || second.fits(value),
  }
}

export function secret(check: Check): Check {
  return { ...check, secret: true }
}

function isPlainObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
