/** An export, built by a worker in small steps. If the worker is killed, another one resumes after the last completed step. */
import { setTimeout as delay } from 'node:timers/promises'
import { json, type Outcome, type PhasedExecution } from 'latchkey'
import type { ShopDatabase } from './shop-database.ts'

export interface ExportInput {
  readonly account: string
}

const parts = 4
/** So that a person can watch the steps move. */
const partMs = 500

export async function buildExport<Tx>(
  x: PhasedExecution<Tx>,
  { account }: ExportInput,
  database: ShopDatabase<Tx>,
): Promise<Outcome> {
  const id = await x.phase('open', tx => database.insertExport(tx, account))
  for (let part = 1; part <= parts; part++) {
    await delay(partMs)
    await x.phase(`part ${part} of ${parts}`, tx => database.addExportPart(tx, id))
  }
  return json(201, await x.phase('finish', tx => database.finishExport(tx, id)))
}
