/** The table that README quotes: every goal, and what was measured. */
import { barOf, type Verdict } from './goals.ts'
import { markdownTable } from './table.ts'
import type { Figure } from '../statistics.ts'

export function summaryTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ goal, found, met }) => [goal.why, barOf(goal), shown(found), met ? 'yes' : '**no**'])
  return markdownTable(['what', 'goal', 'measured (min to max)', 'met'], rows)
}

function shown(found: Figure | undefined): string {
  if (found === undefined) return 'not measured'
  const { value, min, max, unit } = found
  return `${short(value)} ${unit} (${short(min)} to ${short(max)})`
}

/** Three figures that count: enough to compare, and no more than the spread allows. */
function short(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toString()
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2)
}
