import { jsonDepthMax } from './canonical-json.ts'

/**
 * `unsafe-integer` includes the text as well: a plain function sees the same rounded number that is hashed, so its caller may
 * continue. Where the value was parsed from a body, the client's digits are lost and the caller has to refuse.
 */
export type CanonicalValue =
  | { kind: 'canonical'; text: string }
  | { kind: 'unsafe-integer'; text: string; path: string }
  /** Nested deeper than `levelsMax`. */
  | { kind: 'too-deep'; levelsMax: number }

interface Walk {
  unsafeAt: string | undefined
  tooDeep: boolean
  /** The names that lead to the current value, and the objects they lead through. One list for the whole walk: a copy for each member
   * would multiply its cost by the depth of the nesting. */
  readonly path: string[]
  readonly parents: object[]
}

/**
 * RFC 8785 for a value in memory. Undefined members are omitted and `toJSON` is honoured, as in JSON.stringify; what JSON.stringify
 * would silently drop or change (a Map, NaN, a function, a hole in an array) throws a TypeError that names its path. One deviation: a
 * lone surrogate is written as its escape, so that every string has a form and no two share one.
 */
export function canonicalizeValue(value: unknown): CanonicalValue {
  const walk: Walk = { unsafeAt: undefined, tooDeep: false, path: [], parents: [] }
  const text = writeValue(walk, value)
  if (walk.tooDeep) return { kind: 'too-deep', levelsMax: jsonDepthMax }
  return walk.unsafeAt === undefined
    ? { kind: 'canonical', text }
    : { kind: 'unsafe-integer', text, path: walk.unsafeAt }
}

function writeValue(walk: Walk, value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'boolean':
      return String(value)
    case 'number':
      return writeNumber(walk, value)
    case 'object':
      return value === null ? 'null' : writeObject(walk, value)
    default:
      throw refusal(walk, `is a ${typeof value}`)
  }
}

function writeNumber(walk: Walk, value: number): string {
  if (!Number.isFinite(value)) throw refusal(walk, `is ${value}`)
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) walk.unsafeAt ??= pathText(walk)
  return String(value)
}

function writeObject(walk: Walk, value: object): string {
  // Checked at the limit only: a value that refers to itself always reaches it.
  if (walk.parents.length >= jsonDepthMax) {
    if (walk.parents.includes(value)) throw refusal(walk, 'refers to itself')
    walk.tooDeep = true
  }
  // The result is discarded, so nothing more is written.
  if (walk.tooDeep) return ''
  walk.parents.push(value)
  const text = writeMembers(walk, value)
  walk.parents.pop()
  return text
}

function writeMembers(walk: Walk, value: object): string {
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const replaced: unknown = value.toJSON(walk.path.at(-1) ?? '')
    if (replaced !== value) return writeValue(walk, replaced)
  }
  if (Array.isArray(value)) {
    // Array.from visits holes, which map would skip.
    return `[${Array.from(value, (element: unknown, i) => writeMember(walk, String(i), element)).join(',')}]`
  }
  const tag = Object.prototype.toString.call(value)
  if (tag !== '[object Object]') throw refusal(walk, `is an ${tag.slice(8, -1)}`)
  const members: string[] = []
  // Own members only, whatever their names; and the default sort compares UTF-16 code units.
  for (const name of Object.keys(value).sort()) {
    const member: unknown = Reflect.get(value, name)
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${writeMember(walk, name, member)}`)
  }
  return `{${members.join(',')}}`
}

function writeMember(walk: Walk, name: string, value: unknown): string {
  walk.path.push(name)
  const text = writeValue(walk, value)
  walk.path.pop()
  return text
}

function pathText({ path }: Walk): string {
  return path.length === 0 ? '(the value itself)' : path.slice(0, 16).join('.')
}

function refusal(walk: Walk, fault: string): TypeError {
  return new TypeError(
    `Cannot fingerprint the input: ${pathText(walk)} ${fault}. Give JSON values only, or your own fingerprint.`,
  )
}
