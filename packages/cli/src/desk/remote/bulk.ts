/** A bulk act that the server runs: this asks how far it is, and cancels it when the call is interrupted. */
import type { Clock } from 'latchkey'
import type { BulkPlan, BulkRow } from 'latchkey/admin'
import { CliError, exits } from '../../program/exit.ts'
import { pause } from '../../program/pause.ts'
import type { Desk } from '../desk.ts'
import type { Api } from './http.ts'
import { actOf } from './answers.ts'

const pollMs = 500
/** One row takes less, and a process that ended runs no more of them: then another one continues. */
const stillMsMax = 15_000
/** As often in a row, without one more result. */
const startsMax = 4

export interface RemoteBulk {
  readonly api: Api
  readonly clock: Clock
  /** Default: 15 s. */
  readonly stillMs?: number
}

export async function startRemoteBulk(
  { api, clock, stillMs = stillMsMax }: RemoteBulk,
  { bulkId, signal, onRow }: Parameters<Desk['startBulk']>[0],
): Promise<object> {
  const path = `bulk/${encodeURIComponent(bulkId)}`
  const start = async () => actOf(await api({ path: `${path}/start`, body: {} }))
  const started = await start()
  if (!('plan' in started)) return started
  const read = rowReader(api, path, onRow)
  let plan = await planOf(api, path)
  let movedAtMs = clock.monotonicMs()
  let starts = 1
  while (plan.state === 'running' || plan.state === 'planned') {
    if (signal?.aborted === true) await api({ path: `${path}/cancel`, body: {}, evenInterrupted: true })
    else if ((await read()) > 0) [movedAtMs, starts] = [clock.monotonicMs(), 1]
    else await pause(pollMs, signal)
    if (clock.monotonicMs() - movedAtMs > stillMs) {
      if (starts === startsMax) throw stoppedHalfWay(plan)
      // Its rows are done once, whoever continues.
      await start()
      ;[movedAtMs, starts] = [clock.monotonicMs(), starts + 1]
    }
    plan = await planOf(api, path)
  }
  while ((await read()) > 0);
  return { kind: 'started', plan }
}

function stoppedHalfWay({ bulkId, finished, matched }: BulkPlan): CliError {
  const message = `the server makes no progress: ${finished} of ${matched} were done. Plan ${bulkId}. Look at the log of the server, and run the command again for the rest`
  return new CliError(exits.unreachable, 'stopped-half-way', message)
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
