/** The outbox on SQLite, assembled. */
import type { Outbox } from '../../../ports/outbox.ts'
import { storableMessage } from '../../shared/outbox/message.ts'
import type { Database } from '../connection/database.ts'
import { downstreamId, lag, parked, prune, redrive, redrives } from './operate.ts'
import { hasWork, leaseLane, releaseLane, renewLane } from './lanes.ts'
import { nextBatch } from './next.ts'
import { settleBatch } from './settle.ts'
import { storable } from '../keys/row.ts'
import { laneCount } from '../migrations/0003-outbox.ts'
import { nowMsSql } from '../migrations/index.ts'
import type { OpenTransactions } from '../atomic/open-transactions.ts'
import type { SqliteTx } from '../atomic/transaction.ts'

const appendSql = `
  INSERT INTO latchkey_outbox (lane, aggregate, dedup_id, topic, payload, headers, scope, created_at_ms)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ${nowMsSql})`

export function sqliteOutbox(database: Database, transactions: OpenTransactions): Outbox<SqliteTx> {
  return {
    lanes: laneCount,
    append: (tx, message) =>
      database.translateErrors(async () => {
        const { lane, aggregate, dedupId, topic, payload, headerText, scope } = storableMessage(message, laneCount)
        const values = [
          lane,
          aggregate ?? null,
          dedupId,
          topic,
          payload,
          headerText,
          scope === undefined ? null : storable(scope),
        ]
        transactions.of(tx).use(handle => handle.rows(appendSql, values))
      }),
    async leaseLane(asked) {
      // An idle relay only reads, and waits for no writer.
      const worth = await database.read(hasWork)
      return worth ? database.write(handle => leaseLane(handle, asked)) : undefined
    },
    renewLane: (lease, leaseMs) => database.write(handle => renewLane(handle, lease, leaseMs)),
    releaseLane: lease => database.write(handle => releaseLane(handle, lease)),
    next: (lease, { limit }) => nextBatch(database, lease, limit),
    settle: (lease, settlement) => database.write(handle => settleBatch(handle, lease, settlement)),

    parked: which => database.read(handle => parked(handle, which)),
    redrive: (position, act) => database.write(handle => redrive(handle, position, act)),
    redrives: position => database.read(handle => redrives(handle, position)),
    downstreamId: position => database.read(handle => downstreamId(handle, position)),
    prune: which => database.write(handle => prune(handle, which)),
    lag: () => database.read(lag),
  }
}
