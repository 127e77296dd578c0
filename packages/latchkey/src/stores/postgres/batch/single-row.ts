/**
 * A claim and a completion that are alone: a statement for one row of the plainest kind each, written or not. A function would hold the lock
 * timeout and the plan's settings as those of the batches do, and cost more than the row.
 */
import { systemClock } from '../../../ports/clock.ts'
import { milliseconds, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { ownPath } from '../sql/functions.ts'
import type { Ask } from '../connection/statement.ts'

export interface LoneStatements {
  readonly claim: string
  readonly complete: string
}

/** True if the statement wrote its row. */
export async function writes(ask: Ask, text: string, values: readonly unknown[]): Promise<boolean> {
  return (await ask(text, values)).rowCount === 1
}

/**
 * The primary key is the claim's arbiter, and a row that can be seen is not offered to it, so that a replay neither locks nor waits. A plan
 * that was made while the table was small could read all of it ever after. So both ask a function that is said to be expensive, which
 * makes every other way than the primary key cost more.
 */
export function loneStatements(sql: Dialect): LoneStatements {
  return {
    claim: `insert into ${sql.keys} (id, claim_id, fence, created_at, granted_at, expires_at, locked_until,
        attempts, state, recovery, fingerprint, scope, operation, description)
      select $1::uuid, $2::uuid, 1, ${sql.now}, ${sql.now}, ${sql.now} + ${milliseconds('$6')}, ${sql.now} + ${milliseconds('$5')},
        1, ${state.in_progress}, $4::smallint, $3::bytea, $7::text, $8::text, $9::text
      where not exists (select from ${sql.keys} s where s.id = $1::uuid and ${sql.functions.oneRow}())
      on conflict (id) do nothing`,
    complete: `update ${sql.keys} k set state = ${state.completed}, locked_until = null, completed_at = ${sql.now},
        outcome = $4::bytea, expires_at = greatest(k.expires_at, ${sql.now} + ${milliseconds('$3')})
      where k.id = $1::uuid and k.fence = 1 and k.claim_id = $2::uuid and k.state = ${state.in_progress}
        and ${sql.functions.oneRow}()`,
  }
}

/** It is evaluated last, so for the one row that all else has let through. */
export function oneRowFunction(sql: Dialect): string {
  return `create function ${sql.functions.oneRow}() returns boolean language plpgsql volatile cost 100000
set ${ownPath} as $latchkey$
begin
  return true;
end $latchkey$;

`
}

/** As the lock timeout of a batch: who is in its way keeps the one, and not those that come after. */
const laneHeldMs = 50

/** Resolves when the answer is there, and at the latest when the lane has to go on without it. */
export function untilLaneIsFree(answer: Promise<unknown>): Promise<void> {
  return new Promise(resolve => {
    const cancel = systemClock.after(laneHeldMs, resolve)
    const free = () => {
      cancel()
      resolve()
    }
    answer.then(free, free)
  })
}
