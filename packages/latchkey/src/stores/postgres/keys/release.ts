/** Claims whose replies were lost, released. */
import type { LostClaim, Store } from '../../../ports/store.ts'
import { lineReturned, writeLines } from '../audit/lines.ts'
import type { RunStatement } from '../connection/statement.ts'
import { recovery, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { queueWaiting, waitingColumns } from './waiting-list.ts'

export function releaseCalls(sql: Dialect, run: RunStatement): Pick<Store, 'release' | 'releaseMany'> {
  const texts = { release: releaseStatement(sql), releaseMany: releaseManyStatement(sql) }
  return {
    async release(id, claimId) {
      const rows = await run(texts.release, [id, claimId])
      return rows.length > 0 ? 'released' : 'not-yours'
    },
    async releaseMany(claims: readonly LostClaim[]) {
      const values = [claims.map(({ id }) => id), claims.map(({ claimId }) => claimId)]
      const rows = await run<{ readonly claim_id: string }>(texts.releaseMany, values)
      return rows.map(row => row.claim_id)
    },
  }
}

/** Atomic: one statement. By claim id alone, because a caller that lost the reply to its claim does not know the fence. */
function releaseStatement(sql: Dialect): string {
  return `with released as (
      update ${sql.keys} k set state = ${state.failed_retryable}, locked_until = null, due_at = ${sql.now}
      where k.id = $1::uuid and k.claim_id = $2::uuid and k.state = ${state.in_progress}
      returning ${waitingColumns}${lineReturned(sql)}
    ), ${queueWaiting(sql, 'released')}${writeLines(sql, 'released')}
    select 1 from released`
}

/**
 * A plain statement: it runs after an outage, not on the way of a request.
 * Atomic: one statement; evidence and queues follow from what the guarded update returned. Locked by identity first, as the batches
 * are, so that they never wait for each other in a circle; the update compares again what may have changed while a lock was waited for.
 */
export function releaseManyStatement(sql: Dialect): string {
  return `with found as materialized (
      select k.id, k.claim_id, k.state from unnest($1::uuid[], $2::uuid[]) a (id, claim_id)
      join ${sql.keys} k on k.id = a.id and k.claim_id = a.claim_id
      where k.recovery <> ${recovery.resume} and k.state in (${state.in_progress}, ${state.unknown}, ${state.failed_retryable})
      order by k.id for update of k
    ), released as (
      update ${sql.keys} k set state = ${state.failed_retryable}, locked_until = null, parked_at = null, due_at = ${sql.now}
      from found f where k.id = f.id and k.claim_id = f.claim_id and k.state = f.state
        and (f.state = ${state.in_progress} or f.state = ${state.unknown} and not ${hasHappened(sql)})
      returning k.id, k.fence, k.claim_id, f.state as was${lineReturned(sql)}
    ), settled as materialized (
      select r.id, r.fence, r.claim_id from released r where r.was = ${state.unknown}
    ), unqueued as (
      delete from ${sql.due} d using settled s where d.id = s.id
    ), unlisted as (
      delete from ${sql.waiting} w using settled s where w.id = s.id
    ), kept as (
      insert into ${sql.evidence} (key_id, fence, claim_id, source, verdict, applied, at)
      select s.id, s.fence, s.claim_id, 'late-owner', 'never-happened', true, ${sql.now} from settled s
    )${writeLines(sql, 'released')}
    select r.claim_id from released r
    union all select f.claim_id from found f where f.state = ${state.failed_retryable}`
}

/** What a reconciler would apply. Evidence of an earlier generation of the key proves nothing about this one. */
function hasHappened(sql: Dialect): string {
  return `exists (select from ${sql.evidence} e where e.key_id = k.id and e.ref is not null
          and e.verdict in ('happened', 'declined') and e.at >= k.created_at)`
}
