import { DisplayString, Token, parseItem as parseItemText } from 'structured-headers'

/** A bare item of RFC 9651, section 3.3, with its type. */
export type BareItem =
  | { type: 'string'; value: string }
  | { type: 'token'; value: string }
  | { type: 'number'; value: number }
  | { type: 'boolean'; value: boolean }
  | { type: 'bytes'; value: Uint8Array }
  | { type: 'date'; seconds: number }
  | { type: 'display-string'; value: string }

export type ItemResult = { kind: 'item'; item: BareItem; parameters: Map<string, BareItem> } | { kind: 'malformed' }

/**
 * Parses one Structured Field Item (RFC 9651, section 4.2.3). The caller joins several lines of a field with ", ", as section 4.2 asks: two
 * lines then fail as one value with text after its item.
 */
export function parseItem(text: string): ItemResult {
  // Section 4.2, step 2. The library accepts characters above U+00FF inside a display string.
  if (/[^\x00-\x7f]/.test(text)) return { kind: 'malformed' }
  try {
    const marked = markDates(text)
    const [item, parameters] = parseItemText(marked)
    const convert = marked === text ? toBareItem : unmarkDate
    return {
      kind: 'item',
      item: convert(item),
      parameters: new Map([...parameters].map(([name, value]) => [name, convert(value)])),
    }
  } catch {
    // The library throws for every syntax error, and for nothing else.
    return { kind: 'malformed' }
  }
}

// structured-headers 2.1.0 requires the input to end after a Date, so `"k";t=@1` parses and `"k";t=@1;v=2` does not, and it turns the
// largest dates into an invalid Date. So dates pass through it as marked tokens. Strings are matched first in order to skip them, open ones
// up to the end, since searching for their end from every quote would take quadratic time. A text that already contains the mark is left as it is.
const dateMark = '*latchkey.date/'
const stringsAndDates = /%"[^"]*(?:"|$)|"(?:[^"\\]|\\.)*(?:"|\\?$)|(^ *|=)@(-?\d{1,15})(?=[ ;]|$)/g

function markDates(text: string): string {
  if (!text.includes('@') || text.includes(dateMark)) return text
  return text.replace(stringsAndDates, (whole: string, before: string | undefined, digits: string | undefined) =>
    before === undefined || digits === undefined ? whole : before + dateMark + digits,
  )
}

function unmarkDate(value: unknown): BareItem {
  const item = toBareItem(value)
  if (item.type !== 'token' || !item.value.startsWith(dateMark)) return item
  // Adding 0 turns -0 into 0, the only zero in RFC 9651.
  return { type: 'date', seconds: Number(item.value.slice(dateMark.length)) + 0 }
}

function toBareItem(value: unknown): BareItem {
  if (typeof value === 'string') return { type: 'string', value }
  if (typeof value === 'number') return { type: 'number', value: value + 0 }
  if (typeof value === 'boolean') return { type: 'boolean', value }
  if (value instanceof Date) return { type: 'date', seconds: value.getTime() / 1000 }
  if (value instanceof DisplayString) return { type: 'display-string', value: value.toString() }
  if (value instanceof Token) return { type: 'token', value: value.toString() }
  if (value instanceof ArrayBuffer) return { type: 'bytes', value: new Uint8Array(value) }
  throw new Error(`structured-headers returned a bare item of an unknown type: ${typeof value}`)
}

/** Serialises a Structured Field String (RFC 9651, section 4.1.6); `not-ascii` when the text cannot be one. */
export function serializeString(text: string): { kind: 'text'; text: string } | { kind: 'not-ascii' } {
  if (/[^\x20-\x7e]/.test(text)) return { kind: 'not-ascii' }
  return { kind: 'text', text: `"${text.replace(/["\\]/g, '\\$&')}"` }
}
