/**
 * Transactions as a server holds them open for many connections at once. What one writes is kept aside and run by its COMMIT in
 * one short transaction of the memory store, unless the key is not its own any more. The identity's lock is held from the first look
 * at it until the transaction has ended.
 */
import type { NewMessage } from '../../src/ports/outbox.ts'
import type { Outcome } from '../../src/ports/outcome.ts'
import type { PhaseDone } from '../../src/ports/steps.ts'
import type { AtomicRequest, Claim, KeyRecord, OwnerResult, Recorded, Reservation } from '../../src/ports/store.ts'
import type { MemoryStore, MemoryTx } from '../../src/stores/memory/index.ts'
import type { Cause, Database } from './database.ts'

/** A row of the application, or a message in the outbox. */
export interface Written {
  readonly id: string
  readonly name: string
  readonly value: string
  readonly message?: NewMessage
}

export interface ServerTx {
  ended: boolean
  /** What COMMIT does to the key's row; false: the row is not its own any more. */
  key: { readonly cause: Cause; write(store: MemoryStore, tx: MemoryTx): Promise<boolean> } | undefined
  readonly writes: Written[]
}

function identityLocks() {
  const holders = new Map<string, ServerTx>()
  const waiting = new Map<string, (() => void)[]>()

  function whenFree(id: string, run: () => void): void {
    if (!holders.has(id)) return run()
    waiting.set(id, [...(waiting.get(id) ?? []), () => whenFree(id, run)])
  }

  function end(tx: ServerTx): void {
    tx.ended = true
    for (const [id, holder] of holders) if (holder === tx) holders.delete(id)
    for (const [id, runs] of waiting) {
      if (holders.has(id)) continue
      waiting.delete(id)
      for (const run of runs) run()
    }
  }

  return { holders, whenFree, end }
}

export interface Transactions extends PhaseCalls, AtomicCalls {
  begin(): ServerTx
  commit(tx: ServerTx): Promise<'committed' | 'conflict' | 'rolled-back'>
  rollback(tx: ServerTx): void
  /** When no transaction holds the identity any more. */
  readWhenFree(id: string): Promise<KeyRecord | undefined>
}

interface PhaseCalls {
  enterPhase(tx: ServerTx, claim: Claim): Promise<OwnerResult>
  recordPhase(tx: ServerTx, claim: Claim, phase: PhaseDone, leaseMs: number): Promise<OwnerResult>
}

interface AtomicCalls {
  reserve(tx: ServerTx, request: AtomicRequest): Promise<Reservation>
  record(tx: ServerTx, request: AtomicRequest, outcome: Outcome, reservedFence: number): Promise<Recorded>
}

interface Server {
  readonly holders: Map<string, ServerTx>
  whenFree(id: string, run: () => void): void
  /** What it would be: rolled back, and run again by the COMMIT. */
  dryRun<T>(work: (store: MemoryStore, tx: MemoryTx) => Promise<T>): Promise<T>
}

export function serverTransactions(
  database: Database,
  { committed }: { committed: (writes: readonly Written[]) => void },
): Transactions {
  const { holders, end, whenFree } = identityLocks()
  const dryRun: Server['dryRun'] = work => database.read(store => rolledBack(store, work))
  const server: Server = { holders, whenFree, dryRun }

  return {
    ...phaseCalls(server),
    ...atomicCalls(server),
    begin: () => ({ ended: false, key: undefined, writes: [] }),
    rollback: end,
    readWhenFree: id =>
      new Promise((resolve, reject) => {
        whenFree(id, () => void database.read(store => store.read(id)).then(resolve, reject))
      }),
    async commit(tx) {
      if (tx.ended) return 'rolled-back'
      const cause = tx.key?.cause ?? { by: 'request', what: 'commit' }
      const { kind } = await database.serve(cause, store =>
        store.transactor.transaction(async own => {
          await store.transactor.adopt(own)
          if (tx.key !== undefined && !(await tx.key.write(store, own))) return 'rollback'
          for (const written of tx.writes) await apply(store, own, written)
          return 'commit'
        }),
      )
      if (kind === 'committed') committed(tx.writes)
      end(tx)
      return kind === 'committed' ? kind : 'conflict'
    },
  }
}

async function rolledBack<T>(store: MemoryStore, work: (store: MemoryStore, tx: MemoryTx) => Promise<T>): Promise<T> {
  const results: T[] = []
  await store.transactor.transaction(async tx => {
    await store.transactor.adopt(tx)
    results.push(await work(store, tx))
    return 'rollback'
  })
  // The work has resolved, or the transaction would have rejected.
  return results[0] as T
}

function phaseCalls({ holders, whenFree, dryRun }: Server): PhaseCalls {
  return {
    enterPhase: (tx, claim) =>
      new Promise((resolve, reject) => {
        whenFree(claim.id, () => {
          if (tx.ended) return resolve('claim-lost')
          holders.set(claim.id, tx)
          dryRun((store, own) => store.phases.enterPhase(own, claim)).then(resolve, reject)
        })
      }),
    async recordPhase(tx, claim, phase, leaseMs) {
      const write = async ({ phases }: MemoryStore, own: MemoryTx) =>
        (await phases.recordPhase(own, claim, phase, leaseMs)) === 'written'
      if (tx.ended || !(await dryRun(write))) return 'claim-lost'
      tx.key = { cause: { by: 'owner', what: `phase ${phase.name}` }, write }
      return 'written'
    },
  }
}

function atomicCalls({ holders, dryRun }: Server): AtomicCalls {
  return {
    async reserve(tx, request) {
      const { id } = request.identity
      const held = tx.ended || holders.has(id)
      if (!held) holders.set(id, tx)
      const found = await dryRun((store, own) => store.transactor.reserve(own, request))
      return held && !isFinished(found) ? { kind: 'busy' } : found
    },
    async record(tx, request, outcome, reservedFence) {
      const write = async ({ transactor }: MemoryStore, own: MemoryTx) =>
        (await transactor.record(own, request, outcome, reservedFence)) === 'recorded'
      if (tx.ended || !(await dryRun(write))) return 'taken'
      tx.key = { cause: { by: 'request', what: 'record' }, write }
      return 'recorded'
    },
  }
}

function isFinished(found: Reservation): boolean {
  return found.kind === 'seen' && (found.record.state === 'completed' || found.record.state === 'unknown')
}

async function apply(store: MemoryStore, tx: MemoryTx, { id, name, value, message }: Written): Promise<void> {
  if (message !== undefined) return store.outbox.append(tx, message)
  tx.table<string>(name).set(id, value)
}
