/** Phases: the step is recorded in the transaction that the application writes in. */
import type { Phases } from '../../../ports/steps.ts'
import { stepKindCodes } from '../../shared/codes.ts'
import { lockOf } from '../atomic/reserve-and-record.ts'
import { runIn } from '../connection/statement.ts'
import { mine, owner } from '../keys/owner.ts'
import { readable } from '../sql/columns.ts'
import { state, stepState } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { renewedIf, step, stepAtPosition, written } from './steps.ts'

export function postgresPhases(sql: Dialect): Phases<unknown> {
  const texts = phaseStatements(sql)
  return {
    async enterPhase(tx, claim) {
      const within = runIn(tx, sql)
      await within('select pg_catalog.pg_advisory_xact_lock($1::bigint)', [lockOf(claim.id)])
      // A statement of its own: the one that waited for the lock has a snapshot from before the wait.
      return written(await within(texts.check, owner(claim)))
    },
    async recordPhase(tx, claim, { position, name, value: result }, leaseMs) {
      return written(
        await runIn(tx, sql)(texts.phase, [...step(claim, position, leaseMs), readable(name), result ?? null]),
      )
    },
  }
}

interface PhaseStatements {
  readonly check: string
  readonly phase: string
}

/** `phase` is atomic as every write of a step: see `renewedIf`. */
function phaseStatements(sql: Dialect): PhaseStatements {
  return {
    // Not locked: every other claim of the row would wait for a lock that is held while the phase works.
    check: `select 1 from ${sql.keys} k where ${mine} and k.state = ${state.in_progress}`,
    // A phase that is already recorded was committed: its work must not commit a second time.
    phase: `with ${renewedIf(sql, `not exists (${stepAtPosition(sql)})`)}, kept as (
        insert into ${sql.steps} (id, position, name, kind, state, result)
        select o.id, $4::integer, $6::text, ${stepKindCodes.phase}, ${stepState.done}, $7::text from owned o
      )
      select 1 from owned`,
  }
}
