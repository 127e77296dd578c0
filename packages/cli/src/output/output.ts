/** stdout is data, stderr is talk and progress. Nothing else in the program writes to either. */
import { colors, type Colors } from './colors.ts'
import { type Column, table } from './table.ts'

export interface OutputStream {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  write(text: string): unknown
}

export type Format = 'text' | 'json' | 'jsonl'

export interface Output {
  readonly format: Format
  /** Of stdout. */
  readonly paint: Colors
  /** One result: as JSON, or as these lines. */
  value(value: unknown, lines: () => readonly string[]): void
  /** A list: as a JSON array, as a JSON line for each, or as a table. `empty` is said where there is none. */
  rows<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[], empty?: string): void
  /** One result of many, at once: a JSON line with --json too, because nobody can wait for the last. */
  line(value: unknown, text: string): void
  /** For people, on stderr; not with -q. */
  talk(text: string): void
  /** Only with -v. */
  detail(text: string): void
  /** On stderr, whatever -q says. */
  error(text: string): void
  readonly progress: Progress
}

export interface Progress {
  /** A bar on a terminal, a line every 5 s elsewhere. */
  show(done: number, total: number, what: string): void
  end(): void
}

export interface OutputOptions {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly format: Format
  readonly color: 'auto' | 'always' | 'never'
  readonly noColor: boolean
  readonly quiet: boolean
  readonly verbose: boolean
  readonly nowMs: () => number
}

export function outputOf(options: OutputOptions): Output {
  const { stdout, stderr, format, quiet, verbose } = options
  const paint = colors(isColored(options))
  const toStderr = (text: string) => void stderr.write(`${text}\n`)
  const print = (text: string) => void stdout.write(`${text}\n`)
  return {
    format,
    paint,
    value(value, lines) {
      if (format === 'text') for (const line of lines()) print(line)
      else print(JSON.stringify(value, undefined, format === 'json' ? 2 : undefined))
    },
    rows(rows, columns, empty) {
      if (format === 'json') return print(JSON.stringify(rows, undefined, 2))
      if (format === 'jsonl') return rows.forEach(row => print(JSON.stringify(row)))
      if (rows.length === 0) return empty === undefined || quiet ? undefined : toStderr(empty)
      for (const line of table(rows, columns, paint)) print(line)
    },
    line: (value, text) => print(format === 'text' ? text : JSON.stringify(value)),
    talk: text => (quiet ? undefined : toStderr(text)),
    detail: text => (verbose ? toStderr(text) : undefined),
    error: toStderr,
    progress: progressOf(options),
  }
}

/** NO_COLOR counts unless colours are asked for by name. */
function isColored({ color, noColor, stdout, format }: OutputOptions): boolean {
  if (color !== 'auto') return color === 'always'
  return !noColor && format === 'text' && stdout.isTTY === true
}

/** A log that is read later needs no more than this. */
const lineEveryMs = 5_000

function progressOf({ stderr, quiet, nowMs }: OutputOptions): Progress {
  const isTerminal = stderr.isTTY === true
  let shownAtMs = nowMs()
  let open = false
  return {
    show(done, total, what) {
      if (quiet) return
      if (isTerminal) {
        open = true
        stderr.write(`\r${bar(done, total)} ${done}/${total} ${what}`)
        return
      }
      if (nowMs() - shownAtMs < lineEveryMs) return
      shownAtMs = nowMs()
      stderr.write(`${done}/${total} ${what}\n`)
    },
    end() {
      if (open) stderr.write('\n')
      open = false
    },
  }
}

const barWidth = 24

function bar(done: number, total: number): string {
  const filled = total === 0 ? barWidth : Math.round((done / total) * barWidth)
  return `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}]`
}
