/** A bulk act: planned, shown, confirmed, run, each row with its own result. */
import type { BulkGiven, BulkPlan, BulkRow } from 'latchkey/admin'
import { confirmPlan } from '../terminal/confirm.ts'
import type { Context } from '../program/context.ts'
import { type Exit, exits } from '../program/exit.ts'
import { planned } from './answers.ts'
import type { Desk } from './desk.ts'
import { interrupted } from './each.ts'

/** `act`: for people. */
export async function runBulk(context: Context, desk: Desk, given: BulkGiven, act: string): Promise<Exit> {
  const { out } = context
  const plan = planned(await desk.planBulk(given), act)
  const { bulkId, matched, excluded, sample } = plan
  if (matched === 0) {
    out.value({ act, matched, excluded }, () => [])
    out.talk(`nothing matches${leftOut(plan)}`)
    return exits.done
  }
  if ((await confirmPlan(context, { act, matched, excluded, sample })) === 'dry-run') return exits.done
  const results = await runPlan(context, desk, bulkId, matched)
  const failed = results.filter(({ result }) => !isGood(result)).length
  out.talk(`${results.length} of ${matched} were tried: ${summary(results)}${leftOut(plan)}`)
  if (context.signal.aborted && results.length < matched)
    throw interrupted(`${results.length} of ${matched} were done. Plan ${bulkId}`)
  return failed === 0 ? exits.done : exits.no
}

async function runPlan(context: Context, desk: Desk, bulkId: string, matched: number): Promise<readonly BulkRow[]> {
  const { out, signal } = context
  const results: BulkRow[] = []
  const onRow = (row: BulkRow) => {
    results.push(row)
    out.line({ id: row.id, result: row.result }, `${row.id}  ${row.result}`)
    out.progress.show(results.length, matched, 'done')
  }
  planned(await desk.startBulk({ bulkId, signal, onRow }), `plan ${bulkId}`)
  out.progress.end()
  return results
}

/** A proposal is what the act comes to where a second person is needed. */
function isGood(result: string | undefined): boolean {
  return result === 'done' || result === 'second-person-needed'
}

function summary(results: readonly BulkRow[]): string {
  const counts = new Map<string, number>()
  for (const { result = 'none' } of results) counts.set(result, (counts.get(result) ?? 0) + 1)
  return [...counts].map(([result, count]) => `${count} ${result}`).join(', ')
}

function leftOut({ excluded }: BulkPlan): string {
  const parts = Object.entries(excluded).map(([why, count]) => `${count} ${why}`)
  return parts.length === 0 ? '' : `; left out: ${parts.join(', ')}`
}
