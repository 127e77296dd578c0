/** A bulk act that the server runs: this asks how far it is, and cancels it when the call is interrupted. */
import type { BulkPlan, BulkRow } from 'latchkey/admin'
import { pause } from '../../program/pause.ts'
import type { Desk } from '../desk.ts'
import type { Api } from './http.ts'
import { actOf } from './answers.ts'

const pollMs = 500

export async function startRemoteBulk(
  api: Api,
  { bulkId, signal, onRow }: Parameters<Desk['startBulk']>[0],
): Promise<object> {
  const path = `bulk/${encodeURIComponent(bulkId)}`
  const started = actOf(await api({ path: `${path}/start`, body: {} }))
  if (!('plan' in started)) return started
  const read = rowReader(api, path, onRow)
  let plan = await planOf(api, path)
  while (plan.state === 'running' || plan.state === 'planned') {
    if (signal?.aborted === true) await api({ path: `${path}/cancel`, body: {}, evenInterrupted: true })
    else if ((await read()) === 0) await pause(pollMs, signal)
    plan = await planOf(api, path)
  }
  while ((await read()) > 0);
  return { kind: 'started', plan }
}

/** Reads on from the last row that has a result, and returns how many there were. */
function rowReader(api: Api, path: string, onRow: ((row: BulkRow) => void) | undefined): () => Promise<number> {
  let after: number | undefined
  return async () => {
    const { body } = await api({ path: `${path}/rows`, query: { cursor: after }, evenInterrupted: true })
    // The API's rows; without a result they are still to come.
    const rows = (body as readonly BulkRow[]).filter(({ result }) => result !== undefined)
    for (const row of rows) onRow?.(row)
    after = rows.at(-1)?.at ?? after
    return rows.length
  }
}

async function planOf(api: Api, path: string): Promise<BulkPlan> {
  // The API's plan of this id, which was read a moment ago.
  return (await api({ path, evenInterrupted: true })).body as BulkPlan
}
