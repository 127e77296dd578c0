/** Compares a run with an earlier one: its medians with the spread of the other. */
import { readFileSync } from 'node:fs'
import type { Figure } from '../statistics.ts'
import type { Verdict } from './goals.ts'
import { shown } from './summary.ts'
import { markdownTable } from './table.ts'

export type Figures = Readonly<Record<string, Figure>>

/** Out of `latest.json` of another run, or of the published `docs/bench/figures.json`. */
export function readFigures(file: string): Figures {
  const { figures } = JSON.parse(readFileSync(file, 'utf8')) as { figures?: Figures }
  if (figures === undefined)
    throw new Error('it has no figures; pass the latest.json of another run, or docs/bench/figures.json')
  return figures
}

export function agreementTable(verdicts: readonly Verdict[], earlier: Figures): string {
  const rows = verdicts.map(({ name, goal, found }) => [
    goal.why,
    shown(earlier[name]),
    shown(found),
    agrees(found, earlier[name]) ? 'yes' : '**no**',
  ])
  return markdownTable(['what', 'earlier', 'now', 'now within the earlier spread'], rows)
}

export function agrees(found: Figure | undefined, earlier: Figure | undefined): boolean {
  return found !== undefined && earlier !== undefined && found.value >= earlier.min && found.value <= earlier.max
}
