/** Deferred work: the row, its input and its place in the queue, in one commit. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { EnqueueRequest, EnqueueResult, Store } from '../../../ports/store.ts'
import type { Batching } from '../batch/batched-calls.ts'
import type { RunStatement } from '../connection/statement.ts'
import {
  isExpired,
  keyWithOutcome,
  milliseconds,
  outcomeColumns,
  recordColumns,
  recovery,
  state,
} from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { readable } from '../sql/columns.ts'
import { workValues } from '../steps/journal.ts'
import { byIdentity } from './claim.ts'
import { keyRecord, type KeyRow } from './read.ts'
import { queueWaiting, waitingColumns } from './waiting-list.ts'

/** Null in `id`: there was no row. */
type EnqueueRow = { readonly queued: boolean; readonly was_expired: boolean | null } & (KeyRow | { readonly id: null })

/** As for a claim: each repetition means that another transaction committed between the read and the insert. */
const attemptsMax = 20

export function enqueueCall(sql: Dialect, run: RunStatement): Pick<Store, 'enqueue'> {
  const text = enqueueStatement(sql)
  return {
    async enqueue(request) {
      const values = enqueueValues(request)
      for (let attempts = 0; attempts < attemptsMax; attempts += 1) {
        const [row] = await run<EnqueueRow>(text, values)
        const result = row && enqueueResult(row)
        if (result !== undefined) return result
      }
      throw new LatchkeyError(
        'store-unavailable',
        `the row of identity ${request.identity.id} changed during each of ${attemptsMax} attempts: try again`,
      )
    },
  }
}

/** Calls of one key that wait at the same time share a statement. */
export function joinedEnqueue({ single, sideBySide }: Batching): Pick<Store, 'enqueue'> {
  return {
    enqueue: sideBySide<EnqueueRequest, EnqueueResult>({
      name: 'enqueue',
      ...byIdentity,
      sendAlone: single.enqueue,
      // Whatever its fingerprint: only a row that is not there, or over, is queued anew.
      mayShare: result => result.kind === 'seen' && !result.record.expired,
    }),
  }
}

function enqueueResult(row: EnqueueRow): EnqueueResult | undefined {
  if (row.queued) return { kind: 'queued' }
  // Absent or expired when it was read, and yet not queued: another transaction committed in between. Read again.
  if (row.id === null || row.was_expired === true) return undefined
  return { kind: 'seen', record: keyRecord(row) }
}

function enqueueValues({ identity, claimId, fingerprint, ...request }: EnqueueRequest): readonly unknown[] {
  return [
    identity.id,
    claimId,
    fingerprint,
    request.expiresInMs,
    readable(identity.scope),
    readable(identity.operation),
    request.description === undefined ? null : readable(request.description),
    request.tombstoneMs ?? null,
    ...workValues(request.work),
  ]
}

/**
 * Atomic as a claim is: the primary key is the arbiter, and an expired row is locked and compared again before its next
 * generation begins. Nothing of the last one stays: neither its steps nor its input. A row that is not expired is only read.
 */
function enqueueStatement(sql: Dialect): string {
  return `with seen as materialized (
    select ${recordColumns(sql)}, ${outcomeColumns}, ${isExpired(sql)} as was_expired from ${keyWithOutcome(sql, '$1')}
  ), queued as (
    insert into ${sql.keys} as k (id, claim_id, fence, created_at, expires_at, due_at,
      attempts, state, recovery, fingerprint, scope, operation, description, tombstone_ms)
    select $1::uuid, $2::uuid, 1, t.now, t.now + ${milliseconds('$4')}, t.now,
      0, ${state.pending}, ${recovery.resume}, $3::bytea, $5::text, $6::text, $7::text, $8::float8::bigint
    from (select ${sql.now} as now) t
    where not exists (select from seen s where not s.was_expired)
    on conflict (id) do update set
      claim_id = excluded.claim_id,
      fence = k.fence + 1,
      created_at = excluded.created_at,
      granted_at = null,
      expires_at = excluded.expires_at,
      due_at = excluded.due_at,
      completed_at = null,
      attempts = excluded.attempts,
      crashes = 0,
      state = excluded.state,
      recovery = excluded.recovery,
      fingerprint = excluded.fingerprint,
      description = excluded.description,
      last_error_code = null,
      tombstone_ms = excluded.tombstone_ms,
      gone_at = null
    where k.fence = (select s.fence from seen s) and ${isExpired(sql)}
    returning ${waitingColumns}
  ), input_kept as (
    insert into ${sql.inputs} as i (id, version, input, deadline_at)
    select q.id, $9::integer, $10::text, ${sql.now} + ${milliseconds('$11')} from queued q
    on conflict (id) do update set version = excluded.version, input = excluded.input, deadline_at = excluded.deadline_at
  ), steps_gone as (
    delete from ${sql.steps} p where p.id = $1::uuid and exists (select from queued)
  ), ${queueWaiting(sql, 'queued')}
  select exists (select from queued) as queued, s.* from (select) one left join seen s on true`
}
