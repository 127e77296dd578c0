/**
 * Transactions of the model: writes are kept aside and applied at once by COMMIT, unless the key's row is another one than
 * the transaction has seen. The identity's lock is held from the first look at it until the transaction has ended.
 */
import type { Outcome } from '../../src/ports/outcome.ts'
import type { PhaseDone } from '../../src/ports/steps.ts'
import type { AtomicRequest, Claim, OwnerResult, Reservation } from '../../src/ports/store.ts'
import { grantedFrom, type ModelRow, recordOf } from './model-row.ts'
import type { ModelStore } from './model-store.ts'

/** A row of the application, or a message in the outbox. */
export interface Written {
  readonly id: string
  readonly name: string
  readonly value: string
}

export interface ModelTx {
  ended: boolean
  /** What COMMIT writes to the key, if its row is still `seen`. */
  key: { id: string; seen: ModelRow | undefined; write: () => void } | undefined
  readonly writes: Written[]
}

function identityLocks() {
  const holders = new Map<string, ModelTx>()
  const waiting = new Map<string, (() => void)[]>()

  function whenFree(id: string, run: () => void): void {
    if (!holders.has(id)) return run()
    waiting.set(id, [...(waiting.get(id) ?? []), () => whenFree(id, run)])
  }

  function end(tx: ModelTx): void {
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

export type ModelTransactions = ReturnType<typeof modelTransactions>

export function modelTransactions(
  store: ModelStore,
  { now, committed }: { now: () => number; committed: (writes: readonly Written[]) => void },
) {
  const { holders, end, whenFree } = identityLocks()
  return {
    begin: (): ModelTx => ({ ended: false, key: undefined, writes: [] }),
    whenFree,
    rollback: end,
    commit(tx: ModelTx): 'committed' | 'conflict' | 'rolled-back' {
      if (tx.ended) return 'rolled-back'
      const { key } = tx
      const stale = key !== undefined && store.rows.get(key.id) !== key.seen
      if (!stale) {
        key?.write()
        committed(tx.writes)
      }
      end(tx)
      return stale ? 'conflict' : 'committed'
    },
    enterPhase(tx: ModelTx, claim: Claim, answer: (result: OwnerResult) => void): void {
      whenFree(claim.id, () => {
        if (!tx.ended) holders.set(claim.id, tx)
        answer(!tx.ended && store.working(claim) !== undefined ? 'written' : 'claim-lost')
      })
    },
    recordPhase(tx: ModelTx, claim: Claim, { position, name, value: result }: PhaseDone, leaseMs: number): OwnerResult {
      const seen = store.working(claim)
      if (tx.ended || seen === undefined || seen.steps.some(step => step.position === position)) return 'claim-lost'
      const step = { position, name, kind: 'phase', state: 'done', result, epoch: 0 } as const
      const steps = [...seen.steps, { ...step, openedAtMs: 0, windowMs: undefined, key: undefined, keyEpoch: 0 }]
      const write = () =>
        store.put(claim.id, { ...seen, steps, lockedUntilMs: now() + leaseMs }, 'owner', `phase ${name}`)
      tx.key = { id: claim.id, seen, write }
      return 'written'
    },
    reserve(tx: ModelTx, request: AtomicRequest): Reservation {
      const { identity } = request
      const row = store.rows.get(identity.id)
      const from = grantedFrom(row, request, now())
      const finished = row?.state === 'completed' || row?.state === 'unknown'
      const held = tx.ended || holders.has(identity.id)
      if (held && !(finished && from === 'seen')) return { kind: 'busy' }
      if (!held) holders.set(identity.id, tx)
      if (row !== undefined && from === 'seen') return { kind: 'seen', record: recordOf(row, now()) }
      return { kind: 'free', fence: row?.fence ?? 0, from: from === 'seen' ? 'none' : from }
    },
    record(tx: ModelTx, request: AtomicRequest, outcome: Outcome, reservedFence: number): 'recorded' | 'taken' {
      const { id } = request.identity
      const seen = store.rows.get(id)
      const from = grantedFrom(seen, request, now())
      if (tx.ended || (seen?.fence ?? 0) !== reservedFence || from === 'seen') return 'taken'
      const write = () =>
        store.put(id, store.completed(store.granted(seen, request), outcome, request.retentionMs), 'request', 'record')
      tx.key = { id, seen, write }
      return 'recorded'
    },
  }
}
