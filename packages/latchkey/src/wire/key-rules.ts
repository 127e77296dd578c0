/** What an operation accepts as a key, however the key arrived. */
import type { KeyFieldFault } from './problem.ts'

export interface KeyRules {
  /** Fewest characters of a key, after unquoting. Default 1. */
  readonly minLength?: number
  /** Most characters of a key, after unquoting. Default 255, the usual limit among providers. */
  readonly maxLength?: number
  /** A pattern that the whole key must match. Default: any. */
  readonly pattern?: RegExp
  /** What the pattern stands for, in the texts of refusals: "a UUID". Default: the format that the operation requires. */
  readonly called?: string
  /** Refuse what looks like an e-mail address. Default false. */
  readonly refuseEmails?: boolean
}

/** The formats that have names. */
export const namedKeyRules: Readonly<Record<'uuid' | 'ulid', KeyRules>> = {
  uuid: { pattern: /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i, called: 'a UUID' },
  ulid: { pattern: /[0-7][0-9a-hjkmnp-tv-z]{25}/i, called: 'a ULID' },
}

export type KeyFieldResult =
  | { kind: 'key'; key: string }
  | { kind: 'missing' }
  | { kind: 'invalid'; reason: KeyFieldFault; detail: string }

export const keyLengthMax = 255

export function checkKey(key: string, rules: KeyRules): KeyFieldResult {
  const lengthMax = rules.maxLength ?? keyLengthMax
  const lengthMin = rules.minLength ?? 1
  if (key.length === 0) return invalid('empty', 'The key is an empty string.')
  if (key.length > lengthMax) return invalid('too-long', lengthDetail(key, `at most ${lengthMax}`))
  if (key.length < lengthMin) return invalid('too-short', lengthDetail(key, `at least ${lengthMin}`))
  if (rules.pattern !== undefined && !wholePattern(rules.pattern).test(key)) {
    return invalid('format', `The key is not ${rules.called ?? 'of the format that this operation requires'}.`)
  }
  if (rules.refuseEmails === true && emailLike.test(key)) {
    return invalid('format', 'The key looks like an e-mail address. Send a new random key with each new request.')
  }
  return { kind: 'key', key }
}

/** Something, an at sign, and a name with a dot in it. Also where more stands around it. */
const emailLike = /[^\s@]@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}/i

function lengthDetail(key: string, bound: string): string {
  return `The key has ${key.length} characters; ${bound} are accepted.`
}

// A pattern without anchors would accept any key that merely contains a match, and one with the flag g or y retains a position between
// calls. Neither is what the author of a format means.
const anchored = new WeakMap<RegExp, RegExp>()

function wholePattern(pattern: RegExp): RegExp {
  const known = anchored.get(pattern)
  if (known !== undefined) return known
  const whole = new RegExp(`^(?:${pattern.source})$`, pattern.flags.replace(/[gym]/g, ''))
  anchored.set(pattern, whole)
  return whole
}

export function invalid(reason: KeyFieldFault, detail: string): KeyFieldResult {
  return { kind: 'invalid', reason, detail }
}
