import { parseSource, walk } from '../check/syntax.ts'

/**
 * The compiler indents by four spaces; a tab reads as well, and the rest would be weight. A text in backquotes stays as it is: its spaces are
 * the program's.
 */
export function indentWithTabs(file: string, text: string): string {
  const kept = textRanges(file, text)
  let offset = 0
  let next = 0
  const rows = text.split('\n').map(row => {
    const start = offset
    offset += row.length + 1
    while ((kept[next]?.end ?? Infinity) < start) next += 1
    const isInText = (kept[next]?.start ?? Infinity) < start
    return isInText ? row : row.replace(/^(?: {4})+/, spaces => '\t'.repeat(spaces.length / 4))
  })
  return rows.join('\n')
}

type Range = { readonly start: number; readonly end: number }

function textRanges(file: string, text: string): Range[] {
  const ranges: Range[] = []
  walk(parseSource(file, text).program, ({ type, start, end }) => {
    if (type === 'TemplateElement') ranges.push({ start, end })
  })
  return ranges.toSorted((a, b) => a.start - b.start)
}
