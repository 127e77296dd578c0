/** The outbox in memory, assembled. */
import type { Outbox } from '../../../ports/outbox.ts'
import { storableMessage } from '../../shared/outbox/message.ts'
import type { OpenTransactions } from '../atomic/open-transactions.ts'
import type { MemoryTx } from '../atomic/transaction.ts'
import type { Tables } from '../tables.ts'
import { laneCount, leaseLane, releaseLane, renewLane } from './lanes.ts'
import { nextBatch } from './next.ts'
import { downstreamId, lag, parked, prune, redrive, redrives } from './operate.ts'
import { settleBatch } from './settle.ts'

export function memoryOutbox(tables: Tables, transactions: OpenTransactions): Outbox<MemoryTx> {
  return {
    lanes: laneCount,
    async append(tx, message) {
      const { lane, aggregate, dedupId, topic, payload, headers, scope } = storableMessage(message, laneCount)
      const copies = { payload: new Uint8Array(payload), headers: { ...headers }, createdAtMs: tables.now() }
      transactions.of(tx).use(draft => draft.append({ lane, aggregate, dedupId, topic, scope, ...copies }))
    },
    leaseLane: async asked => leaseLane(tables, asked),
    renewLane: async (lease, leaseMs) => renewLane(tables, lease, leaseMs),
    releaseLane: async lease => releaseLane(tables, lease),
    next: async (lease, { limit }) => nextBatch(tables, lease, limit),
    settle: async (lease, settlement) => settleBatch(tables, lease, settlement),

    parked: async which => parked(tables, which),
    redrive: async (position, act) => redrive(tables, position, act),
    redrives: async position => redrives(tables, position),
    downstreamId: async position => downstreamId(tables, position),
    prune: async which => prune(tables, which),
    lag: async () => lag(tables),
  }
}
