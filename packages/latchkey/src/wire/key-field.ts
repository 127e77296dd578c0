import { parseItem, serializeString } from './structured-field.ts'

/** What a site accepts as a key, on top of the field's syntax. */
export interface KeyFormat {
  /** Fewest characters of a key, after unquoting. Default 1. Raise it where short keys would be guessable. */
  minLength?: number
  /** Most characters of a key, after unquoting. Default 255, the common ceiling among providers. */
  maxLength?: number
  /** What the whole key has to match. Default: any printable ASCII. Set it where clients must send, say, a UUID. */
  pattern?: RegExp
}

export interface KeyFieldOptions {
  /**
   * Accept a Structured Field String only, as the draft asks. Default false: a bare key is accepted too, because that
   * is what most deployed clients send. Set it where every client is known to quote.
   */
  strictSyntax?: boolean
  /** Length and shape of a key. Default 1 to 255 characters of any shape. */
  keyFormat?: KeyFormat
}

export type KeyFieldFault = 'malformed' | 'wrong-type' | 'empty' | 'too-long' | 'too-short' | 'format'

export type KeyFieldResult =
  | { kind: 'key'; key: string }
  | { kind: 'missing' }
  | { kind: 'invalid'; reason: KeyFieldFault; detail: string }

export const keyLengthMax = 255

// A parser has to manage Strings of 1,024 characters (RFC 9651, section 3.3.3), each of which may be escaped, and some
// parameters. Past that we refuse before parsing, so that a hostile field costs a length check.
const fieldLengthMin = 4096

// Narrow on purpose: no quote, comma, semicolon or space, so that a broken list or String never becomes a key. Around
// it only spaces, since a tab fails in a Structured Field Item as well.
const bareKey = /^ *([A-Za-z0-9][A-Za-z0-9._~:/+=@!-]*) *$/

/**
 * Reads the key out of all lines of the field, in the order received. The quoted and the bare spelling of a key give
 * the same key, because a client that starts to quote in the middle of a retry must not run its request twice.
 */
export function readKeyField(
  lines: readonly string[] | string | undefined,
  options: KeyFieldOptions = {},
): KeyFieldResult {
  const all = typeof lines === 'string' ? [lines] : (lines ?? [])
  if (all.length === 0) return { kind: 'missing' }
  const format = options.keyFormat ?? {}
  const lengthMax = Math.max(fieldLengthMin, 2 * (format.maxLength ?? keyLengthMax) + 1024)
  const length = all.reduce((sum, line) => sum + line.length + 2, -2)
  if (length > lengthMax)
    return invalid('too-long', `The field has ${length} characters; at most ${lengthMax} are read.`)
  const parsed = parseKey(all.join(', '), options.strictSyntax ?? false)
  return parsed.kind === 'key' ? checkFormat(parsed.key, format) : parsed
}

function parseKey(text: string, strictSyntax: boolean): KeyFieldResult {
  const bare = strictSyntax ? undefined : bareKey.exec(text)?.[1]
  if (bare !== undefined) return { kind: 'key', key: bare }
  const result = parseItem(text)
  if (result.kind === 'malformed') return invalid('malformed', expectation(strictSyntax))
  if (result.item.type === 'string') return { kind: 'key', key: result.item.value }
  // Without strict syntax a Token is not a type of its own but a bare key gone wrong.
  return strictSyntax
    ? invalid('wrong-type', `The field is a Structured Field ${result.item.type}; ${quoted}`)
    : invalid('malformed', expectation(strictSyntax))
}

const quoted = 'send one String in double quotes, for example "8e03978e-40d5-43e8-bc93-6894a57f9324".'

function expectation(strictSyntax: boolean): string {
  return `The field does not hold exactly one key; ${strictSyntax ? quoted : `${quoted} Quotes may be left out.`}`
}

function checkFormat(key: string, format: KeyFormat): KeyFieldResult {
  const lengthMax = format.maxLength ?? keyLengthMax
  const lengthMin = format.minLength ?? 1
  if (key.length === 0) return invalid('empty', 'The key is an empty string.')
  if (key.length > lengthMax) return invalid('too-long', lengthDetail(key, `at most ${lengthMax}`))
  if (key.length < lengthMin) return invalid('too-short', lengthDetail(key, `at least ${lengthMin}`))
  if (format.pattern !== undefined && !wholePattern(format.pattern).test(key)) {
    return invalid('format', 'The key does not have the format that this operation publishes.')
  }
  return { kind: 'key', key }
}

function lengthDetail(key: string, bound: string): string {
  return `The key has ${key.length} characters; ${bound} are accepted.`
}

// A pattern without anchors would accept any key that merely contains a match, and one with the flags g or y keeps a
// position between calls. Neither is what the author of a format means.
const anchored = new WeakMap<RegExp, RegExp>()

function wholePattern(pattern: RegExp): RegExp {
  const known = anchored.get(pattern)
  if (known !== undefined) return known
  const whole = new RegExp(`^(?:${pattern.source})$`, pattern.flags.replace(/[gym]/g, ''))
  anchored.set(pattern, whole)
  return whole
}

function invalid(reason: KeyFieldFault, detail: string): KeyFieldResult {
  return { kind: 'invalid', reason, detail }
}

/**
 * Writes a key as the field's value: a Structured Field String. Throws a RangeError on a key that no field can carry,
 * since a client that goes on without its key would lose the protection it asked for.
 */
export function writeKeyField(key: string): string {
  if (key.length === 0) throw new RangeError('An idempotency key is empty: give it at least one character.')
  const written = serializeString(key)
  if (written.kind === 'text') return written.text
  throw new RangeError('An idempotency key holds a character outside printable ASCII: use a UUID or similar.')
}
