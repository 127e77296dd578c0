import type { Header } from '../../../ports/outcome.ts'

/** List fields: the values of an outer middleware and the stored ones are both sent. */
const combined = new Set(['vary', 'link'])

/** Combines our headers with those that outer middleware set: ours replace those of the same name, except for list fields. */
export function mergeHeaders(outer: readonly Header[], own: readonly Header[]): Header[] {
  const replaced = new Set(own.map(([name]) => name.toLowerCase()).filter(name => !combined.has(name)))
  const kept = outer.filter(([name]) => !replaced.has(name.toLowerCase()))
  const fresh = own.filter(
    ([name, value]) => !kept.some(one => one[0].toLowerCase() === name.toLowerCase() && one[1] === value),
  )
  return [...kept, ...fresh]
}
