/** The four requests that are traced, and the table of what they cross, which stands in ARCHITECTURE.md. */
import { textBetween, withTextBetween } from '../marked-text.ts'
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
const marks = { start: '<!-- walk: written by `npm run walk -- --update` -->', end: '<!-- walk: end -->' }

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
  return withTextBetween(text, marks, table)
}

export interface StatedWalk {
  readonly files: number
  readonly hops: number
}

/** What the text says of each flow, by its title. */
export function statedWalks(text: string): ReadonlyMap<string, StatedWalk> {
  const rows = textBetween(text, marks).matchAll(/^\| (.+?) \| (\d+) \| \d+ \| \d+ \| (\d+) \|$/gm)
  return new Map([...rows].map(([, title = '', files, hops]) => [title, { files: Number(files), hops: Number(hops) }]))
}
