import { jsonDepthMax } from './canonical-json.ts'

/**
 * `unsafe-integer` comes with the text as well: a plain function sees the same rounded number that is hashed, so its
 * caller may go on. Where the value was parsed from a body, the client's digits are gone and the caller has to refuse.
 */
export type CanonicalValue =
  | { kind: 'canonical'; text: string }
  | { kind: 'unsafe-integer'; text: string; path: string }

interface Walk {
  unsafeAt: string | undefined
}

/**
 * RFC 8785 for a value in memory. Members that are undefined are absent and `toJSON` is honoured, as in JSON.stringify;
 * what JSON.stringify would drop or blur in silence (a Map, NaN, a function, a hole in an array) throws a TypeError
 * that names its path. One deviation: a lone surrogate is written as its escape, so that every string has a form and no
 * two share one.
 */
export function canonicalizeValue(value: unknown): CanonicalValue {
  const walk: Walk = { unsafeAt: undefined }
  const text = writeValue(walk, value, [])
  return walk.unsafeAt === undefined
    ? { kind: 'canonical', text }
    : { kind: 'unsafe-integer', text, path: walk.unsafeAt }
}

function writeValue(walk: Walk, value: unknown, path: readonly string[]): string {
  if (path.length > jsonDepthMax) throw refusal(path, `is nested deeper than ${jsonDepthMax}, or refers to itself`)
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'boolean':
      return String(value)
    case 'number':
      return writeNumber(walk, value, path)
    case 'object':
      return value === null ? 'null' : writeObject(walk, value, path)
    default:
      throw refusal(path, `is a ${typeof value}`)
  }
}

function writeNumber(walk: Walk, value: number, path: readonly string[]): string {
  if (!Number.isFinite(value)) throw refusal(path, `is ${value}`)
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) walk.unsafeAt ??= pathText(path)
  return String(value)
}

function writeObject(walk: Walk, value: object, path: readonly string[]): string {
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const replaced: unknown = value.toJSON(path.at(-1) ?? '')
    if (replaced !== value) return writeValue(walk, replaced, path)
  }
  if (Array.isArray(value)) {
    // Array.from visits holes too, which map would skip.
    return `[${Array.from(value, (element: unknown, i) => writeValue(walk, element, [...path, String(i)])).join(',')}]`
  }
  const tag = Object.prototype.toString.call(value)
  if (tag !== '[object Object]') throw refusal(path, `is an ${tag.slice(8, -1)}`)
  const members: string[] = []
  // Own members only, whatever their names; and the default sort compares UTF-16 code units.
  for (const name of Object.keys(value).sort()) {
    const member: unknown = Reflect.get(value, name)
    if (member === undefined) continue
    members.push(`${JSON.stringify(name)}:${writeValue(walk, member, [...path, name])}`)
  }
  return `{${members.join(',')}}`
}

function pathText(path: readonly string[]): string {
  return path.length === 0 ? '(the value itself)' : path.slice(0, 16).join('.')
}

function refusal(path: readonly string[], fault: string): TypeError {
  return new TypeError(
    `Cannot fingerprint the input: ${pathText(path)} ${fault}. Give JSON values only, or your own fingerprint.`,
  )
}
