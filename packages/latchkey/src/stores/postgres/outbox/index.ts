/** The outbox on PostgreSQL, assembled. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { Outbox } from '../../../ports/outbox.ts'
import { storableMessage } from '../../shared/outbox/message.ts'
import { queryableOf } from '../connection/adopted.ts'
import { inTransaction, type RunStatement } from '../connection/statement.ts'
import type { PgClient } from '../driver.ts'
import { readable } from '../sql/columns.ts'
import { type Dialect, outboxNames } from '../sql/names.ts'
import { laneCalls, laneCount } from './lanes.ts'
import { nextCalls } from './next.ts'
import { operatorCalls } from './operate.ts'
import { settleCall } from './settle.ts'

/** `run`: each statement its own commit. The client type of the pool is the caller's to name. */
export function postgresOutbox<Client = PgClient>(sql: Dialect, run: RunStatement): Outbox<Client> {
  const names = outboxNames(sql)
  const appendText = `insert into ${names.outbox} (lane, aggregate, dedup_id, topic, payload, headers, scope, created_at)
    values ($1::smallint, $2::text, $3::text, $4::text, $5::bytea, $6::text, $7::text, ${sql.now})`
  return {
    lanes: laneCount,
    async append(tx, message) {
      const { lane, aggregate, dedupId, topic, payload, headerText, scope } = storableMessage(message, laneCount)
      const queryable = queryableOf(tx)
      if (queryable === undefined) {
        throw new LatchkeyError(
          'not-a-transaction',
          `a message to ${topic} needs an open transaction of the store's database`,
        )
      }
      const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
      const values = [
        lane,
        aggregate ?? null,
        dedupId,
        topic,
        bytes,
        headerText,
        scope === undefined ? null : readable(scope),
      ]
      await inTransaction(queryable, sql.schema)(appendText, values)
    },
    ...laneCalls(sql, names, run),
    ...nextCalls(sql, names, run),
    settle: settleCall(sql, names, run),
    ...operatorCalls(sql, names, run),
  }
}
