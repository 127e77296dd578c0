/** The oldest transaction of the server: nothing after it is vacuumed, and the outbox delivers nothing that was written after it. */
import { durationText } from '../../program/duration.ts'
import { type Check, ok } from '../finding.ts'
import type { PostgresUnderCheck } from './under-check.ts'

/** Messages wait for it that long: from `warnMs` on an operator should look. */
export interface HorizonLimits {
  readonly warnMs: number
  readonly failMs: number
}

const limits: HorizonLimits = { warnMs: 5 * 60_000, failMs: 60 * 60_000 }

/** Sessions, prepared transactions, and replication slots: each can hold the horizon back. */
const holders = `
  select 'session' as kind, pid::text as name, coalesce(application_name, '') as detail,
    extract(epoch from pg_catalog.clock_timestamp() - xact_start) * 1000 as age_ms
  from pg_catalog.pg_stat_activity
  where xact_start is not null and (backend_xmin is not null or backend_xid is not null) and pid <> pg_catalog.pg_backend_pid()
  union all
  select 'prepared transaction', gid, owner::text, extract(epoch from pg_catalog.clock_timestamp() - prepared) * 1000
  from pg_catalog.pg_prepared_xacts
  order by age_ms desc nulls last limit 1`

export function horizonCheck(
  { pool }: Pick<PostgresUnderCheck, 'pool'>,
  { warnMs, failMs }: HorizonLimits = limits,
): Check {
  return {
    name: 'transactions',
    async look() {
      const { rows } = await pool.query<{ kind: string; name: string; detail: string; age_ms: string }>(holders)
      const [oldest] = rows
      const ageMs = Number(oldest?.age_ms ?? 0)
      if (oldest === undefined || ageMs <= warnMs) return ok(`the oldest is ${durationText(ageMs)} old`)
      return [{ verdict: ageMs > failMs ? 'FAIL' : 'warn', ...tooOld(oldest, ageMs) }]
    },
  }
}

function tooOld({ kind, name, detail }: { kind: string; name: string; detail: string }, ageMs: number) {
  const which = detail === '' ? `${kind} ${name}` : `${kind} ${name} (${detail})`
  return {
    text: `${which} has a transaction open for ${durationText(ageMs)}: messages written since are not delivered, and dead rows stay`,
    cure: 'find out who forgot it, and end it',
    sql: [
      kind === 'session'
        ? `select pg_terminate_backend(${name});`
        : `rollback prepared '${name.replaceAll("'", "''")}';`,
    ],
  }
}
