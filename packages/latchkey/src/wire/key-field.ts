import { idempotencyKey } from './headers.ts'
import { checkKey, invalid, type KeyFieldResult, keyLengthMax, type KeyRules } from './key-rules.ts'
import { parseItem, serializeString } from './structured-field.ts'

export interface KeyFieldOptions {
  /**
   * Accept a Structured Field String only, as the draft asks. Default false: a bare key is accepted as well, because most deployed clients send
   * one. Set it where every client is known to quote.
   */
  strictSyntax?: boolean
  /** Length and shape of a key. Default 1 to 255 characters of any shape. */
  keyFormat?: KeyRules
  /** The name of the field, for the texts of refusals. Default `Idempotency-Key`. */
  name?: string
}

// A parser must support Strings of 1,024 characters (RFC 9651, section 3.3.3), each of which may be escaped, and some
// parameters. A longer field is refused before parsing, so that a hostile one costs only a length check.
const fieldLengthMin = 4096

// All of printable ASCII except quote, comma, semicolon, backslash and space, so that a broken list or String never becomes a key. It
// must not begin as another type of Structured Field does: a list, bytes, a boolean, a date. Random keys in base64 may begin with any
// other character. Only spaces may surround it, since a tab fails in a Structured Field Item as well.
const bareKey = /^ *([!#$%&*+./0-9<=>A-Z[\]^_`a-z{|}~-][!#-+\--:<-[\]-~]*) *$/
const bareFirst = /[!#$%&*+./0-9<=>A-Z[\]^_`a-z{|}~-]/
const bareRest = /[!#-+\--:<-[\]-~]/

// A Structured Field String without escapes or parameters, which is how nearly all clients quote: read without the parser of Items.
const plainString = /^ *"([ !#-[\]-~]*)" *$/

/**
 * Reads the key from all lines of the field, in the order received. The quoted and the bare spelling give the same key, because a client that
 * starts to quote between two retries must not run its request twice.
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
    return invalid('too-long', `The field ${nameOf(options)} has ${length} characters; at most ${lengthMax} are read.`)
  // Joined, as RFC 9110, section 5.3, allows, two halves of a quoted string would become a key that no client sent.
  if (all.length > 1)
    return invalid('malformed', `The field ${nameOf(options)} has ${all.length} lines; send it once, with one key.`)
  const parsed = parseKey(all[0] ?? '', options)
  return parsed.kind === 'key' ? checkKey(parsed.key, format) : parsed
}

function nameOf({ name = idempotencyKey }: KeyFieldOptions): string {
  return name
}

function parseKey(text: string, options: KeyFieldOptions): KeyFieldResult {
  const { strictSyntax = false } = options
  const plain = plainString.exec(text)?.[1] ?? (strictSyntax ? undefined : bareKey.exec(text)?.[1])
  if (plain !== undefined) return { kind: 'key', key: plain }
  const result = parseItem(text)
  if (result.kind === 'malformed') return invalid('malformed', malformedDetail(text, options))
  if (result.item.type === 'string') return { kind: 'key', key: result.item.value }
  // Without strict syntax another type is a malformed bare key.
  return strictSyntax
    ? invalid('wrong-type', `The field ${nameOf(options)} is a Structured Field ${result.item.type}; ${quoted}`)
    : invalid('malformed', malformedDetail(text, options))
}

const quoted = 'send one String in double quotes, for example "8e03978e-40d5-43e8-bc93-6894a57f9324".'

function malformedDetail(text: string, options: KeyFieldOptions): string {
  const { strictSyntax = false } = options
  const expected = strictSyntax ? quoted : `${quoted} Quotes may be left out.`
  const fault = strictSyntax || text.trimStart().startsWith('"') ? stringFault(text) : bareFault(text)
  return `The field ${nameOf(options)} does not contain exactly one key${fault}; ${expected}`
}

/** Repeats only one character of the field, because details reach logs. */
function bareFault(text: string): string {
  let start = 0
  let end = text.length
  while (text.charAt(start) === ' ') start++
  while (end > start && text.charAt(end - 1) === ' ') end--
  for (let at = start; at < end; at++) {
    const character = text.charAt(at)
    if ((at === start ? bareFirst : bareRest).test(character)) continue
    return `: ${spelled(character)} at position ${at + 1} cannot ${at === start ? 'begin' : 'occur in'} a key without quotes`
  }
  return ''
}

function stringFault(text: string): string {
  const at = text.search(/[^ -~]/)
  return at === -1 ? '' : `: ${spelled(text.charAt(at))} at position ${at + 1} is not printable ASCII`
}

function spelled(character: string): string {
  if (/[!-~]/.test(character)) return `the character ${character}`
  return `the character U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}

/**
 * Writes a key as the field's value: a Structured Field String. Throws a RangeError for a key that no field can carry, since a client that
 * continued without its key would lose the protection it asked for.
 */
export function writeKeyField(key: string): string {
  if (key.length === 0) throw new RangeError('The idempotency key is empty: it needs at least one character.')
  const written = serializeString(key)
  if (written.kind === 'text') return written.text
  throw new RangeError('The idempotency key contains a character outside printable ASCII: use a UUID or similar.')
}
