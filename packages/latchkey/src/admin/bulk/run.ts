/** A plan that was started: row by row, each with a result of its own, to its end or as far as it comes. */
import { sleep } from '../../ports/clock.ts'
import type { AdminRecords, StoredBulkRow } from '../../ports/faculties/admin.ts'
import { type ActPlan, actOn, lookUpEveryMs, settleRow } from '../acts.ts'
import type { Actor, Admin, OnRow } from '../admin.ts'
import { type AdminContext, versionText } from '../context.ts'
import { redriveOutbox } from '../messages.ts'
import type { ActOutcome, BulkPlan, BulkRow } from '../results.ts'
import type { Imported } from './import.ts'

export type Starting = Parameters<Admin['startBulk']>[1]

export interface Running {
  readonly given: Starting
  readonly planned: BulkPlan
  readonly admin: AdminRecords
}

/** A store that does not answer for a moment. What is down for longer needs a person, who starts the plan again. */
const triesMax = 5
const againAfterMs = 2_000

/** With nobody to start it again, a plan outlives a moment without its store. Rejects when it has given up. */
export async function runToEnd(context: AdminContext, by: Actor, running: Running): Promise<void> {
  for (let tries = 1; tries < triesMax; tries += 1) {
    try {
      return await runPlan(context, by, running)
    } catch (error) {
      context.latchkey.telemetry.report('a bulk act of an operator stopped, and is continued', { error })
      await sleep(context.clock, tries * againAfterMs)
    }
  }
  return runPlan(context, by, running)
}

/** To its end, or until it is cancelled or the caller gives up. */
export async function runPlan(context: AdminContext, by: Actor, { given, planned, admin }: Running): Promise<void> {
  const { bulkId, signal, onRow } = given
  let rows: readonly StoredBulkRow[]
  let after: number | undefined
  do {
    const page = { limit: 100, ...(after === undefined ? {} : { after }) }
    rows = await context.call(() => admin.bulkRows(bulkId, page))
    for (const row of rows) {
      after = row.at
      const stored = await context.call(() => admin.bulk(bulkId))
      if (signal?.aborted === true || stored?.state !== 'running') return
      if (row.result !== undefined) continue
      const done = await runRow(context, by, { bulkId, planned, row })
      onRow?.(done)
    }
  } while (rows.length > 0)
  await context.call(() => admin.moveBulk(bulkId, { from: ['running'], to: 'done' }))
}

interface RowOfPlan {
  readonly bulkId: string
  readonly planned: BulkPlan
  readonly row: StoredBulkRow
}

async function runRow(context: AdminContext, by: Actor, { bulkId, planned, row }: RowOfPlan): Promise<BulkRow> {
  // The same request id for the same row, whoever starts or continues the plan: it is done once.
  const part: Actor = { ...by, requestId: `bulk:${bulkId}:${row.at}` }
  const outcome = await outcomeOfRow(context, part, { planned, row })
  await context.call(async () => context.store.admin?.setBulkResult(bulkId, row.at, outcome.kind))
  return { at: row.at, id: row.id, result: outcome.kind }
}

async function outcomeOfRow(
  context: AdminContext,
  by: Actor,
  { planned, row }: Omit<RowOfPlan, 'bulkId'>,
): Promise<ActOutcome> {
  const { act, reason } = planned
  if (act === 'redrive') return redriveOutbox(context, by, { position: row.id, reason, isPart: true })
  const given: OnRow = { id: row.id, version: row.expected === undefined ? '' : versionText(row.expected), reason }
  const part = (planOfRow: ActPlan) => actOn(context, by, { given, plan: planOfRow, isPart: true })
  if (act === 'take') return part({ right: 'take', act: () => ({ kind: 'take' }) })
  if (act === 'resume') return part({ right: 'resume', act: () => ({ kind: 'unpark' }) })
  if (act === 'look_up') return part({ right: 'look_up', act: () => ({ kind: 'look-up', notWithinMs: lookUpEveryMs }) })
  // Written by `importedRows`.
  const { answer, evidence, response } = JSON.parse(row.detail ?? '{}') as Imported
  return settleRow(context, by, { ...given, answer, evidence, response }, true)
}
