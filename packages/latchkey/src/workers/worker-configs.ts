/** From options to what each worker's loop does. */
import { misconfigured } from '../ports/errors.ts'
import { engine } from '../engine/internal.ts'
import type { Internals } from '../engine/latchkey.ts'
import type { LoopOptions } from './loop.ts'
import type { WorkerName, WorkersHost, WorkersOptions } from './options.ts'
import { reapOnce } from './reaper.ts'
import { relayTurn } from './relay.ts'
import { resumer, type Resumer } from './resumer.ts'
import { sweepOnce } from './sweeper.ts'

/** Rows that one process resumes at once, unless it is told otherwise. */
const slotsMax = 8

/** The relay bounds each delivery and renews its lane; to give up a slow batch would only make copies of its messages. */
const relayTurnMsMax = 900_000

const hour = 3_600_000
const day = 24 * hour
const reapDefaults = { everyMs: 60_000, batch: 1_000, pauseMs: 250, keepDeliveredMs: day, keepReceivedMs: 7 * day }
/** Stripe and Standard Webhooks retry for three days and a little. */
const keepReceivedMsMin = 4 * day

export type Shape = Pick<LoopOptions, 'turn' | 'idleMs' | 'pauseMs' | 'turnMsMax' | 'outstanding' | 'ending'> &
  Partial<Pick<Resumer, 'settled'>>

/** Undefined: there is nothing to do for it here. */
export type Shapes = { readonly [Name in WorkerName]: Shape | undefined }

export function shapes<Tx>(latchkey: WorkersHost<Tx>, options: WorkersOptions): Shapes {
  const internals = latchkey[engine]
  const { store, telemetry } = internals
  const sweep = { everyMs: 60_000, batch: 100, ...options.sweeper }
  const reap = { ...reapDefaults, ...options.reaper }
  checkReceived(reap.keepReceivedMs)
  return {
    sweeper: { idleMs: sweep.everyMs, turn: () => sweepOnce({ store, telemetry, batch: sweep.batch }) },
    resumer: resumerShape(internals, options),
    reconciler: reconcilerShape(internals, options),
    relay: relayShape(internals, options),
    reaper: { idleMs: reap.everyMs, pauseMs: reap.pauseMs, turn: () => reapOnce({ ...reap, store, telemetry }) },
  }
}

function resumerShape<Tx>(internals: Internals<Tx>, options: WorkersOptions): Shape | undefined {
  const { transactional, connections } = internals.store.traits
  const { everyMs, concurrency } = { everyMs: 5_000, concurrency: slots(connections), ...options.resumer }
  // Without transactions there is no phased work to go on with.
  return transactional ? { idleMs: everyMs, ...resumer({ ...internals, concurrency }) } : undefined
}

function reconcilerShape<Tx>(internals: Internals<Tx>, options: WorkersOptions): Shape | undefined {
  const defaults = { everyMs: 5_000, concurrency: slots(internals.store.traits.connections) }
  const { everyMs, concurrency } = { ...defaults, ...options.reconciler }
  if (options.reconcile !== undefined) return { idleMs: everyMs, ...options.reconcile[engine].work({ concurrency }) }
  if (options.reconciler === undefined) return undefined
  throw misconfigured('createWorkers: reconciler has options, and there is no reconcile: createReconciler(latchkey)')
}

function relayShape<Tx>(internals: Internals<Tx>, { targets, relay = {} }: WorkersOptions): Shape | undefined {
  const { everyMs = 500, ...policy } = relay
  if (targets === undefined) return undefined
  const { clock, telemetry, store } = internals
  const { outbox } = store
  if (outbox === undefined) {
    throw misconfigured(`createWorkers: targets are given, and the ${store.name} store has no outbox`)
  }
  return {
    idleMs: everyMs,
    turnMsMax: relayTurnMsMax,
    turn: relayTurn({ ...policy, outbox, targets, clock, telemetry }),
  }
}

/** Half of a small pool is left to requests: a step that waits for a connection runs into the limit of a store call. */
function slots(connections = slotsMax * 2): number {
  return Math.max(1, Math.min(slotsMax, Math.floor(connections / 2)))
}

function checkReceived(keepReceivedMs: number): void {
  if (keepReceivedMs >= keepReceivedMsMin) return
  throw misconfigured(
    `reaper.keepReceivedMs is ${keepReceivedMs}, shorter than senders of webhooks retry: at least ${keepReceivedMsMin} (4 days)`,
  )
}
