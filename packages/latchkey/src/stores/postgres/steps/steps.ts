/** The journal of phased work: read whole, written a step at a time by the owner of the claim. */
import type { Step, Steps } from '../../../ports/steps.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { stepKindCodes } from '../../shared/codes.ts'
import type { RunStatement } from '../connection/statement.ts'
import { mine, owner } from '../keys/owner.ts'
import { milliseconds, state, stepState } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { readable } from '../sql/columns.ts'
import { readJournal } from './journal.ts'

export function postgresSteps(sql: Dialect, run: RunStatement): Steps {
  const texts = stepStatements(sql)
  return {
    readJournal: readJournal(sql, run),
    async openIntent(claim, { position, name, epoch, key, windowMs }, leaseMs) {
      const values = [...step(claim, position, leaseMs), readable(name), epoch, windowMs ?? null, key]
      return written(await run(texts.open, values))
    },
    async recordResult(claim, { position, value: result }, leaseMs) {
      return written(await run(texts.result, [...step(claim, position, leaseMs), result ?? null]))
    },
  }
}

/** The first five values of each statement that writes a step. */
export function step(claim: Claim, position: Step['position'], leaseMs: number): readonly unknown[] {
  return [...owner(claim), position, leaseMs]
}

export function written(rows: readonly unknown[]): OwnerResult {
  return rows.length > 0 ? 'written' : 'claim-lost'
}

interface StepStatements {
  readonly open: string
  readonly result: string
}

/**
 * Every write of a step is atomic because it is one statement that begins with this guarded update of the key's row, fence AND claim id: the
 * step is written from what that update returned, or not at all. The update renews the lease, which a claim compares
 * that has read the steps in an older snapshot.
 */
export function renewedIf(sql: Dialect, condition: string): string {
  return `owned as (
      update ${sql.keys} k set locked_until = ${sql.now} + ${milliseconds('$5')}
      where ${mine} and k.state = ${state.in_progress} and ${condition}
      returning k.id
    )`
}

export function stepAtPosition(sql: Dialect): string {
  return `select from ${sql.steps} p where p.id = $1::uuid and p.position = $4::integer`
}

function stepStatements(sql: Dialect): StepStatements {
  const renew = (condition: string) => renewedIf(sql, condition)
  const here = stepAtPosition(sql)
  const { effect } = stepKindCodes
  return {
    open: `with ${renew(`not exists (${here} and p.state = ${stepState.done})`)}, opened as (
        insert into ${sql.steps} as p (id, position, name, kind, state, epoch, opened_at, repeat_until,
          downstream_key, downstream_epoch)
        select o.id, $4::integer, $6::text, ${effect}, ${stepState.open}, $7::integer, t.now, t.now + ${milliseconds('$8')},
          $9::uuid, $7::integer
        from owned o, (select ${sql.now} as now) t
        on conflict (id, position) do update set state = excluded.state, epoch = excluded.epoch,
          opened_at = ${firstTry('excluded.opened_at')},
          repeat_until = ${firstTry('excluded.opened_at')} + ${milliseconds('$8')},
          downstream_key = excluded.downstream_key, downstream_epoch = excluded.downstream_epoch
        where p.state <> ${stepState.done}
      )
      select 1 from owned`,
    result: `with ${renew(`exists (${here} and p.state in (${stepState.open}, ${stepState.done}))`)}, kept as (
        update ${sql.steps} p set state = ${stepState.done}, result = $6::text, repeat_until = null
        where p.id = $1::uuid and p.position = $4::integer and p.state = ${stepState.open} and exists (select from owned)
      )
      select 1 from owned`,
  }
}

/** Still open: the provider counts from the first try. Known not to have happened: this one is the first. */
function firstTry(now: string): string {
  return `case when p.state = ${stepState.open} then p.opened_at else ${now} end`
}
