/** Every aim, what was measured, and the bar that `--check` enforces. */
import { aimOf, barOf, isMet, type Verdict } from './goals.ts'
import { markdownTable } from './table.ts'
import type { Figure } from '../statistics.ts'

export function summaryTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ goal, found, met }) => {
    const aim = aimOf(goal)
    const reached = found !== undefined && isMet(aim, found.value)
    return [
      goal.why,
      barOf(aim),
      shown(found),
      reached ? 'yes' : '**no**',
      met ? barOf(goal) : `**missed: ${barOf(goal)}**`,
    ]
  })
  return markdownTable(['what', 'aim', 'measured (min to max)', 'reached', 'checked'], rows)
}

export function shown(found: Figure | undefined): string {
  if (found === undefined) return 'not measured'
  const { value, min, max, unit } = found
  return `${short(value)} ${unit} (${short(min)} to ${short(max)})`
}

/** Three significant figures: enough to compare, and no more than the spread allows. */
function short(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toString()
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2)
}
