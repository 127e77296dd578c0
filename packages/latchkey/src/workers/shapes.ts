/** From options to what each worker's loop does. */
import { misconfigured } from '../ports/errors.ts'
import type { Internals } from '../engine/latchkey.ts'
import type { LoopOptions } from './loop.ts'
import type { WorkerName, WorkersHost, WorkersOptions } from './options.ts'
import { reapOnce } from './reaper.ts'
import { relayTurn } from './relayer.ts'
import { resumer } from './resumer.ts'
import { sweepOnce } from './sweeper.ts'

/** Rows that one process resumes at once, unless it is told otherwise. */
const slotsMax = 8

/** The relay bounds each delivery and renews its lane; to give up a slow batch would only make copies of its messages. */
const relayTurnMsMax = 900_000

export type Shape = Pick<LoopOptions, 'turn' | 'idleMs' | 'pauseMs' | 'turnMsMax' | 'outstanding'>

/** Undefined: there is nothing to do for it here. */
export function shapes<Tx>(
  { internals }: WorkersHost<Tx>,
  options: WorkersOptions,
): { [Name in WorkerName]: Shape | undefined } {
  const { store, telemetry } = internals
  const sweep = { everyMs: 60_000, batch: 100, ...options.sweeper }
  const reap = { everyMs: 60_000, batch: 1_000, pauseMs: 250, keepDeliveredMs: 24 * 3_600_000, ...options.reaper }
  checkPositive('sweeper', sweep)
  checkPositive('reaper', reap)
  return {
    sweeper: { idleMs: sweep.everyMs, turn: () => sweepOnce({ store, telemetry, batch: sweep.batch }) },
    resumer: resumerShape(internals, options),
    relay: relayShape(internals, options),
    reaper: { idleMs: reap.everyMs, pauseMs: reap.pauseMs, turn: () => reapOnce({ ...reap, store, telemetry }) },
  }
}

function resumerShape<Tx>(internals: Internals<Tx>, options: WorkersOptions): Shape | undefined {
  const { transactional, connections } = internals.store.traits
  const { everyMs, concurrency } = { everyMs: 5_000, concurrency: slots(connections), ...options.resumer }
  checkPositive('resumer', { everyMs, concurrency })
  // Without transactions there is no phased work to go on with.
  return transactional ? { idleMs: everyMs, ...resumer({ ...internals, concurrency }) } : undefined
}

function relayShape<Tx>(internals: Internals<Tx>, { targets, relay = {} }: WorkersOptions): Shape | undefined {
  const { everyMs = 500, ...policy } = relay
  checkPositive('relay', { everyMs })
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

function checkPositive(worker: WorkerName, values: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(values)) {
    if (value > 0) continue
    throw misconfigured(`${worker}.${name} must be a positive number and is ${value}`)
  }
}
