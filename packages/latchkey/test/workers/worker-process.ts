/**
 * A process with workers and two operations. Every run of a definition or handler is written to a table of its own connection.
 * Forked with a JSON argument; reports what it counts; starts a guarded request for each message; drains at SIGTERM.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createLatchkey, json, singleTenant } from 'latchkey'
import { createWorkers, type WorkersOptions } from 'latchkey/workers'
import { openPlace } from '../processes/database.ts'

export interface WorkerArgument {
  readonly place: string
  readonly leaseMs: number
  readonly workers: WorkersOptions
}

export interface Work {
  readonly label: string
  /** How long the definition pauses between its two phases. */
  readonly slow?: number
  /** Kills the process that runs it. */
  readonly poison?: boolean
}

export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'counted'; readonly metric: string; readonly identity: string | undefined }
  | { readonly kind: 'ended'; readonly drained: boolean }

const argument: WorkerArgument = JSON.parse(process.argv[2] ?? '{}')
const { leaseMs } = argument
const place = await openPlace(argument.place)
const tell = (message: FromWorker) => void (process.connected && process.send?.(message))
const latchkey = createLatchkey({
  store: place.store,
  scope: singleTenant,
  telemetry: {
    count: (metric, { identity }) => tell({ kind: 'counted', metric, identity }),
    observe() {},
    report() {},
  },
})

latchkey.phased('work', { version: 1, leaseMs }, async (x, work: Work) => {
  await place.countExecution(work.label)
  if (work.poison) process.kill(process.pid, 'SIGKILL')
  await x.phase('write', tx => place.insert(tx, work.label))
  await delay(work.slow ?? 0)
  await x.phase('end', () => undefined)
  return json(201, { label: work.label })
})
const hold = latchkey.guarded('hold', { leaseMs, holdMsMax: 60_000, onFailure: 'hold' })

process.on('message', ({ label, slow = 0 }: Work) => {
  void hold.run({ scope: 'acme', key: label, input: {} }, async () => {
    await place.countExecution(label)
    await delay(slow)
  })
})

const workers = createWorkers(latchkey, argument.workers)
async function end(): Promise<void> {
  const drained = [await workers.drain({ timeoutMs: 30_000 }), await latchkey.close({ timeoutMs: 30_000 })]
  await workers.stop()
  await place.close()
  tell({ kind: 'ended', drained: drained.every(end => end.drained) })
  // Nothing else may keep the process alive: it ends by itself.
  process.off('disconnect', exit)
  process.disconnect()
}
// The test has ended, so nothing else would end this process.
const exit = () => process.exit(1)
process.once('disconnect', exit)
process.once('SIGTERM', () => void end())
workers.start()
tell({ kind: 'ready' })
