import type { Header } from '../../../ports/outcome.ts'

/** Fields that several parties add to: an outer middleware's value and the stored one both hold. */
const growing = new Set(['vary', 'link'])

/** The head of an answer of ours on top of what outer middleware set: ours replaces a name, except where the field grows. */
export function mergeHeaders(outer: readonly Header[], own: readonly Header[]): Header[] {
  const replaced = new Set(own.map(([name]) => name.toLowerCase()).filter(name => !growing.has(name)))
  const kept = outer.filter(([name]) => !replaced.has(name.toLowerCase()))
  const fresh = own.filter(
    ([name, value]) => !kept.some(one => one[0].toLowerCase() === name.toLowerCase() && one[1] === value),
  )
  return [...kept, ...fresh]
}
