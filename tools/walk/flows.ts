/** The four requests that are traced, and the table of what they cross, which stands in ARCHITECTURE.md. */
import type { Walk } from './read-flow.ts'

export interface TracedFlow {
  readonly title: string
  readonly program: URL
}

export const flows: readonly TracedFlow[] = [
  { title: 'guarded, Express', program: new URL('./flows/guarded-express.ts', import.meta.url) },
  { title: 'atomic, Hono', program: new URL('./flows/atomic-hono.ts', import.meta.url) },
  { title: 'phased, Hono', program: new URL('./flows/phased-hono.ts', import.meta.url) },
  { title: 'a webhook that settles', program: new URL('./flows/webhook.ts', import.meta.url) },
]

const HEAD = '| flow, on PostgreSQL | files | functions | calls | hops |\n| --- | ---: | ---: | ---: | ---: |'
const START = '<!-- walk: written by `npm run walk -- --update` -->'
const END = '<!-- walk: end -->'

export interface WalkedFlow {
  readonly title: string
  readonly walk: Walk
}

export function walkTable(walked: readonly WalkedFlow[]): string {
  const rows = walked.map(
    ({ title, walk }) => `| ${title} | ${walk.files} | ${walk.functions} | ${walk.calls} | ${walk.path.length} |`,
  )
  return [HEAD, ...rows].join('\n')
}

export function withTable(text: string, table: string): string {
  const [before, rest] = split(text, START)
  const [, after] = split(rest, END)
  return `${before}${START}\n${table}\n${END}${after}`
}

export interface StatedWalk {
  readonly files: number
  readonly hops: number
}

/** What the text says of each flow, by its title. */
export function statedWalks(text: string): ReadonlyMap<string, StatedWalk> {
  const [, rest] = split(text, START)
  const [table] = split(rest, END)
  const rows = table.matchAll(/^\| (.+?) \| (\d+) \| \d+ \| \d+ \| (\d+) \|$/gm)
  return new Map([...rows].map(([, title = '', files, hops]) => [title, { files: Number(files), hops: Number(hops) }]))
}

function split(text: string, mark: string): readonly [string, string] {
  const at = text.indexOf(mark)
  if (at < 0) throw new Error(`the mark ${mark} is missing: put it back where the table belongs`)
  return [text.slice(0, at), text.slice(at + mark.length)]
}
