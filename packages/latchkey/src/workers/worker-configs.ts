/** From the options to the loop of each worker. */
import { misconfigured } from '../ports/errors.ts'
import { engine } from '../engine/internal.ts'
import type { Internals } from '../engine/latchkey.ts'
import { outboxMissing } from '../engine/store/carry.ts'
import type { LoopOptions } from './loop.ts'
import type { WorkerName, WorkersHost, WorkersOptions } from './options.ts'
import { reapOnce } from './reaper.ts'
import { relayTurn } from './relay.ts'
import { resumer, type Resumer } from './resumer.ts'
import { sweepOnce } from './sweeper.ts'

/** The default number of rows that one process resumes at once. */
const slotsMax = 8

/** The relay limits each delivery and renews its lane; giving up a slow batch would only duplicate its messages. */
const relayTurnMsMax = 900_000

const hour = 3_600_000
const day = 24 * hour
const reapDefaults = { everyMs: 60_000, batch: 1_000, pauseMs: 250, keepDeliveredMs: day, keepReceivedMs: 7 * day }
/** Stripe and Standard Webhooks retry for three days and a little. */
const keepReceivedMsMin = 4 * day

export type WorkerConfig = Pick<LoopOptions, 'turn' | 'idleMs' | 'pauseMs' | 'turnMsMax' | 'outstanding' | 'ending'> &
  Partial<Pick<Resumer, 'settled'>>

/** Undefined: the worker has nothing to do here. */
export type WorkerConfigs = { readonly [Name in WorkerName]: WorkerConfig | undefined }

export function workerConfigs<Tx>(latchkey: WorkersHost<Tx>, options: WorkersOptions): WorkerConfigs {
  const internals = latchkey[engine]
  const { store, telemetry } = internals
  const sweep = { everyMs: 60_000, batch: 100, ...options.sweeper }
  const reap = { ...reapDefaults, ...options.reaper }
  checkReceived(reap.keepReceivedMs)
  return {
    sweeper: { idleMs: sweep.everyMs, turn: () => sweepOnce({ store, telemetry, batch: sweep.batch }) },
    resumer: resumerConfig(internals, options),
    reconciler: reconcilerConfig(internals, options),
    relay: relayConfig(internals, options),
    reaper: { idleMs: reap.everyMs, pauseMs: reap.pauseMs, turn: () => reapOnce({ ...reap, store, telemetry }) },
  }
}

function resumerConfig<Tx>(internals: Internals<Tx>, options: WorkersOptions): WorkerConfig | undefined {
  const { steps, traits } = internals.store
  const { everyMs, concurrency } = { everyMs: 5_000, concurrency: slots(traits.connections), ...options.resumer }
  // Without steps there is no phased work to resume.
  return steps !== undefined ? { idleMs: everyMs, ...resumer({ ...internals, concurrency }) } : undefined
}

function reconcilerConfig<Tx>(internals: Internals<Tx>, options: WorkersOptions): WorkerConfig | undefined {
  if (options.reconciler === undefined) return undefined
  const defaults = { everyMs: 5_000, concurrency: slots(internals.store.traits.connections) }
  const { use, everyMs, concurrency } = { ...defaults, ...options.reconciler }
  if (use === undefined) throw misconfigured('createWorkers: reconciler needs use: createReconciler(latchkey)')
  return { idleMs: everyMs, ...use[engine].work({ concurrency }) }
}

function relayConfig<Tx>(internals: Internals<Tx>, { relay }: WorkersOptions): WorkerConfig | undefined {
  if (relay === undefined) return undefined
  const { everyMs = 500, targets, ...policy } = relay
  if (targets === undefined) throw misconfigured('createWorkers: relay needs targets: where messages go, by topic')
  const { clock, telemetry, store } = internals
  const { outbox } = store
  if (outbox === undefined) throw outboxMissing(store, 'createWorkers: relay')
  return {
    idleMs: everyMs,
    turnMsMax: relayTurnMsMax,
    turn: relayTurn({ ...policy, outbox, targets, clock, telemetry }),
  }
}

/** Half of a small pool is left to requests: a step that waits for a connection would exceed the time limit of a store call. */
function slots(connections = slotsMax * 2): number {
  return Math.max(1, Math.min(slotsMax, Math.floor(connections / 2)))
}

function checkReceived(keepReceivedMs: number): void {
  if (keepReceivedMs >= keepReceivedMsMin) return
  throw misconfigured(
    `reaper.keepReceivedMs must be at least ${keepReceivedMsMin}, 4 days, because senders of webhooks retry for 3 (got ${keepReceivedMs})`,
  )
}
