/**
 * A little of what workers do, in every instance, so that a table does not grow for ever where no workers run: dead leases are swept,
 * expired rows reaped and old rates pruned. It never resumes work and relays nothing.
 */
import type { Trail } from './audit/trail.ts'
import type { AfterOutage } from './outage/uncertain-claims.ts'

export type Maintained = 'sweep' | 'reap' | 'audit'

export interface Maintenance {
  /** A worker does this on the same store, until the returned function is called. */
  leaveTo(work: Maintained): () => void
  stop(): void
}

/** As often as a sweeper; a fleet without workers still resolves a dead lease within a few minutes. */
const everyMs = 60_000
/** Of each kind: few enough not to slow requests down. A table that needs more needs workers. */
const rowsMax = 100
/** A line of the audit or a rate is narrow, and a minute may write many: 10,000 of them can go in one pass. */
const linesMax = 500
const turnsMax = 20
/** No request waits for it. */
const passMsMax = 10_000

type StoreOf<Tx> = Omit<AfterOutage<Tx>, 'closing'> & { readonly trail?: Trail | undefined }

/** Of one store object, however many Latchkeys use it. */
interface StoreState {
  lastPassAtMs: number
  reported: boolean
  readonly others: Map<symbol, Maintained>
}

const stores = new WeakMap<object, StoreState>()

export const noMaintenance: Maintenance = { leaveTo: () => () => {}, stop() {} }

export function maintain<Tx>(core: StoreOf<Tx>): Maintenance {
  const { store, clock } = core
  const shared = stores.get(store) ?? { lastPassAtMs: -everyMs, reported: false, others: new Map() }
  stores.set(store, shared)
  let cancel = plan()

  function plan(): () => void {
    // Jitter keeps a fleet that started at once from coming back at once.
    return clock.after(everyMs * (0.75 + clock.random() / 2), () => {
      cancel = plan()
      const nowMs = clock.monotonicMs()
      if (nowMs - shared.lastPassAtMs < everyMs / 2 || !core.calls.circuit.admits()) return
      shared.lastPassAtMs = nowMs
      void pass(core, shared)
    })
  }

  return {
    leaveTo(work) {
      const token = Symbol(work)
      shared.others.set(token, work)
      return () => void shared.others.delete(token)
    },
    stop: () => cancel(),
  }
}

async function pass<Tx>(core: StoreOf<Tx>, shared: StoreState): Promise<void> {
  const done = new Set(shared.others.values())
  if (!done.has('sweep') || !done.has('reap')) await sweepAndReap(core, shared, done)
  if (!done.has('audit')) await turnTrail(core)
}

async function sweepAndReap<Tx>(core: StoreOf<Tx>, shared: StoreState, done: ReadonlySet<Maintained>): Promise<void> {
  if (!shared.reported) {
    shared.reported = true
    core.telemetry.report(
      `no workers run on this ${core.store.name} store: this process sweeps and reaps a few rows of it once a minute. Call createWorkers(latchkey), or set maintenance: false if they run elsewhere`,
      {},
    )
  }
  try {
    if (!done.has('sweep')) await sweep(core)
    if (!done.has('reap')) await reap(core)
  } catch {
    // Counted and reported where the store is called; the next pass comes in a minute.
  }
}

async function turnTrail<Tx>({ trail, telemetry }: StoreOf<Tx>): Promise<void> {
  try {
    for (let turns = 0; turns < turnsMax && (await trail?.turn(linesMax)) === 'more';) turns += 1
  } catch (error) {
    telemetry.report('the audit trail was not expired or handed over; it will be retried in a minute', { error })
  }
}

async function sweep<Tx>({ calls, store, telemetry }: StoreOf<Tx>): Promise<void> {
  const swept = await calls.call('sweep', () => store.sweep({ limit: rowsMax }), passMsMax)
  for (const { id, operation, to } of swept) {
    telemetry.count('zombie_key', { operation, identity: id, detail: to })
    telemetry.report(`lease expired: row moved to ${to}`, { operation, identity: id, detail: to })
  }
}

async function reap<Tx>({ calls, store, telemetry }: StoreOf<Tx>): Promise<void> {
  const reaped = await calls.call('reap', () => store.reap({ limit: rowsMax }), passMsMax)
  for (let n = 0; n < reaped; n++) telemetry.count('ttl_pruned', { detail: 'keys' })
  await prune({ calls, store, telemetry })
}

/** The rates of operations are a table that every busy process writes to. */
async function prune<Tx>({
  calls,
  store,
  telemetry,
}: Pick<StoreOf<Tx>, 'calls' | 'store' | 'telemetry'>): Promise<void> {
  const { admin } = store
  if (admin === undefined) return
  for (let turns = 0; turns < turnsMax; turns += 1) {
    const pruned = await calls.call('reap', () => admin.prune({ limit: linesMax }), passMsMax)
    for (let n = 0; n < pruned; n++) telemetry.count('ttl_pruned', { detail: 'admin' })
    if (pruned < linesMax) return
  }
}
