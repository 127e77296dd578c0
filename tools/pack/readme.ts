/**
 * Markdown as it stands in a package, far from the repository: a package page follows no relative link, and most of what the documents link to
 * is not packed. Links to elsewhere stay.
 */
import { posix } from 'node:path'
import { fencesOf } from '../check/markdown.ts'

/** `packed`: the documents in the package, by their path. A link to one of them becomes its text and the path; any other becomes its text. */
export function readmeForPackage(text: string, packed: ReadonlySet<string>): string {
  return mapLinks(text, ({ label, target }) => {
    const path = posix.normalize(pathOf(target))
    return packed.has(path) ? `${label} (\`${path}\`)` : label
  })
}

/** A guide is read where it is installed: links to what is packed stay as they are. */
export function guideForPackage(text: string, at: string, packed: ReadonlySet<string>): string {
  return mapLinks(text, ({ label, target, whole }) => {
    const path = pathOf(target)
    return path === '' || packed.has(posix.join(posix.dirname(at), path)) ? whole : label
  })
}

type Link = { whole: string; label: string; target: string }

/** Relative links only, and none in fenced code. */
function mapLinks(text: string, map: (link: Link) => string): string {
  const code = new Set(
    fencesOf(text).flatMap(fence => fence.code.split('\n').map((_, index) => fence.firstLine + index)),
  )
  const rows = text.split('\n').map((row, index) => {
    if (code.has(index + 1)) return row
    return row.replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (whole: string, label: string, target: string) =>
      /^[a-z][a-z+.-]*:/i.test(target) ? whole : map({ whole, label, target }),
    )
  })
  return rows.join('\n')
}

const pathOf = (target: string): string => target.split('#')[0] ?? ''
