/**
 * A README as it stands in a package, far from the repository: a package page follows no relative link, so those become their text. Links to
 * elsewhere stay.
 */
import { fencesOf } from '../check/markdown.ts'

/** Not in fenced code. */
export function readmeForPackage(text: string): string {
  const code = new Set(
    fencesOf(text).flatMap(fence => fence.code.split('\n').map((_, index) => fence.firstLine + index)),
  )
  const rows = text.split('\n').map((row, index) => {
    if (code.has(index + 1)) return row
    return row.replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (whole: string, label: string, target: string) =>
      /^[a-z][a-z+.-]*:/i.test(target) ? whole : label,
    )
  })
  return rows.join('\n')
}
