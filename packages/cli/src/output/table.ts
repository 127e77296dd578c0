/** A table for people. Text of rows is the text of strangers: what a terminal would obey is replaced. */
import type { Colors } from './colors.ts'

export interface Column<Row> {
  readonly title: string
  text(row: Row): string | number | undefined | null
}

/** A cell is cut here, so that one long text does not push the others off the screen. */
const cellMax = 60

export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[], paint: Colors): readonly string[] {
  const titles = columns.map(({ title }) => title)
  const cells = rows.map(row => columns.map(({ text }) => cut(plain(String(text(row) ?? '-')))))
  const widths = titles.map((title, index) => Math.max(title.length, ...cells.map(line => line[index]?.length ?? 0)))
  const joined = (line: readonly string[]) =>
    line
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd()
  return [paint.dim(joined(titles)), ...cells.map(joined)]
}

/** Control characters, which could move the cursor or change what was printed before. */
export function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\u{FFFD}')
}

function cut(text: string): string {
  return text.length <= cellMax ? text : `${text.slice(0, cellMax - 1)}…`
}
