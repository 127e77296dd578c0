/** Checks options as JavaScript hands them in: an unknown name or a wrong value is refused at once, with the right one. */
import { misconfigured } from './errors.ts'

/** What one option may be. */
export interface Check {
  /** Completes "X must be …". */
  readonly wants: string
  fits(value: unknown): boolean
  /** Of an option that is itself an object of options. */
  readonly members?: Checks
  /** Of each member of a list, or of each value under a name of the application's own. */
  readonly each?: Check
  /** The words that it may be, to find the one that was meant. */
  readonly words?: readonly string[]
  /** Its value appears in no message. */
  readonly secret?: boolean
}

export type Checks = Readonly<Record<string, Check>>

/** One check for each option of an interface: an option that has none does not compile. */
export type ChecksOf<Options> = { readonly [Name in keyof Required<Options>]: Check }

/**
 * `owner`: the function or operation that they were given to. An option that is undefined was not given; the owner checks
 * whether one is missing.
 */
export function checkOptions(owner: string, given: unknown, checks: Checks): void {
  if (typeof given !== 'object' || given === null) {
    throw misconfigured(`${owner}: the options must be an object (got ${shown(given)})`)
  }
  checkMembers(owner, given, { checks, prefix: '' })
}

interface Expected {
  readonly checks: Checks
  /** `fingerprint.` for the members of `fingerprint`. */
  readonly prefix: string
}

function checkMembers(owner: string, given: object, { checks, prefix }: Expected): void {
  for (const [name, value] of Object.entries(given)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined
    if (check === undefined) throw misconfigured(`${owner}: ${unknownName(name, checks, prefix)}`)
    if (value !== undefined) checkValue(owner, { name: prefix + name, value, check })
  }
}

interface Named {
  readonly name: string
  readonly value: unknown
  readonly check: Check
}

function checkValue(owner: string, { name, value, check }: Named): void {
  if (!check.fits(value)) throw misconfigured(`${owner}: ${name} must be ${check.wants} ${got(check, value)}`)
  if (typeof value !== 'object' || value === null) return
  const { members, each } = check
  if (members !== undefined) checkMembers(owner, value, { checks: members, prefix: `${name}.` })
  if (each === undefined) return
  for (const [key, one] of Object.entries(value)) {
    const place = Array.isArray(value) ? `[${key}]` : `.${key}`
    checkValue(owner, {
      name: name + place,
      value: one,
      check: check.secret === true ? { ...each, secret: true } : each,
    })
  }
}

function unknownName(name: string, checks: Checks, prefix: string): string {
  const names = Object.keys(checks)
  const meant = nearest(name, names)
  const cure = meant === undefined ? `. There are ${names.join(', ')}` : `: did you mean ${prefix}${meant}?`
  return `unknown option ${prefix}${name}${cure}`
}

function got({ words = [], secret = false }: Check, value: unknown): string {
  const meant = typeof value === 'string' ? nearest(value, words) : undefined
  const received = secret ? `(got a ${typeof value})` : `(got ${shown(value)})`
  return meant === undefined ? received : `${received}: did you mean '${meant}'?`
}

/** Long values are cut: they appear in logs. */
const shownMax = 60

export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.length > shownMax ? `${value.slice(0, shownMax)}…` : value}'`
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  return String(value)
}

function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: { readonly candidate: string; readonly edits: number } | undefined
  for (const candidate of candidates) {
    const edits = editsBetween(word.toLowerCase(), candidate.toLowerCase())
    if (edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { candidate, edits }
  }
  // A third of it may be wrong; past that it is another word.
  return best !== undefined && best.edits <= Math.max(1, Math.floor(best.candidate.length / 3))
    ? best.candidate
    : undefined
}

/** Levenshtein's distance, row by row. A word that is much longer than any option is cut. */
function editsBetween(a: string, b: string): number {
  const from = a.slice(0, shownMax)
  let above = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let at = 1; at <= b.length; at++) {
      const replaced = (above[at - 1] ?? 0) + (from[row - 1] === b[at - 1] ? 0 : 1)
      current.push(Math.min(replaced, (above[at] ?? 0) + 1, (current[at - 1] ?? 0) + 1))
    }
    above = current
  }
  return above[b.length] ?? 0
}
