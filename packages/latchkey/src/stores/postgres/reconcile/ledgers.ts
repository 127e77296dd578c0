/** Which comparison of ledgers runs, and how the last one ended: one row for each ledger. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { LastLedgerRun, LedgerCounts, LedgerRun, Ledgers } from '../../../ports/reconciliation.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { epochMs, milliseconds } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { exact } from '../sql/values.ts'

/** Null in `run`: not begun. Also null in `in_ms`: another process began for the first time a moment ago. */
type BeginRow = { readonly run: RawNumber | null; readonly in_ms: RawNumber | null }
type LastRow = { readonly [Count in keyof LedgerCounts]: RawNumber } & { readonly finished_ago_ms: RawNumber }

/** Another process began between the read and the insert; the next attempt sees that. */
const attemptsMax = 5

export function postgresLedgers(sql: Dialect, run: RunStatement): Ledgers {
  const texts = ledgerStatements(sql)
  const write = async (text: string, { name, run: number }: LedgerRun, values: readonly unknown[]) =>
    (await run(text, [exact(name), number, ...values])).length > 0 ? 'written' : 'claim-lost'
  return {
    async begin(name, { everyMs, leaseMs }) {
      for (let attempts = 0; attempts < attemptsMax; attempts += 1) {
        const [row] = await run<BeginRow>(texts.begin, [exact(name), everyMs, leaseMs])
        if (row === undefined) break
        if (row.run !== null) return { kind: 'begun', run: { name, run: Number(row.run) } }
        const inMs = Math.ceil(Number(row.in_ms ?? 0))
        if (inMs > 0) return { kind: 'not-due', inMs }
      }
      throw new LatchkeyError('store-unavailable', `the runs of ledger ${name} keep changing: try again`)
    },
    renew: (ledger, leaseMs) => write(texts.renew, ledger, [leaseMs]),
    end(ledger, end) {
      if ('retryInMs' in end) return write(texts.fail, ledger, [end.retryInMs])
      const { compared, missing, extra, different, settled } = end.counts
      return write(texts.end, ledger, [compared, missing, extra, different, settled])
    },
    async last(name) {
      const [row] = await run<LastRow>(texts.last, [exact(name)])
      return row && lastRun(row)
    },
  }
}

function lastRun(row: LastRow): LastLedgerRun {
  return {
    finishedAgoMs: Math.floor(Number(row.finished_ago_ms)),
    compared: Number(row.compared),
    missing: Number(row.missing),
    extra: Number(row.extra),
    different: Number(row.different),
    settled: Number(row.settled),
  }
}

type LedgerStatements = Record<'begin' | 'renew' | 'end' | 'fail' | 'last', string>

/**
 * Each is atomic because it is one guarded write of one row, by its primary key. A run is its owner's until it ended or another began;
 * the clock is not compared, so that a slow one may still end.
 */
function ledgerStatements(sql: Dialect): LedgerStatements {
  const mine = 'l.name = $1::text and l.run = $2::bigint and l.running_until is not null'
  const dueAt = `greatest(l.running_until, least(l.retry_at, l.began_at + ${milliseconds('$2')}))`
  return {
    begin: `with begun as (
        insert into ${sql.ledgers} as l (name, run, began_at, running_until)
        select $1::text, 1, t.now, t.now + ${milliseconds('$3')} from (select ${sql.now} as now) t
        on conflict (name) do update
        set run = l.run + 1, began_at = excluded.began_at, running_until = excluded.running_until, retry_at = null
        where ${dueAt} <= ${sql.now}
        returning l.run
      )
      select b.run, ${epochMs(`(${dueAt} - ${sql.now})`)} as in_ms
      from (select) one left join begun b on true left join ${sql.ledgers} l on l.name = $1::text`,
    renew: `update ${sql.ledgers} l set running_until = ${sql.now} + ${milliseconds('$3')} where ${mine} returning 1`,
    end: `update ${sql.ledgers} l set running_until = null, finished_at = ${sql.now}, compared = $3::bigint, missing = $4::bigint,
        extra = $5::bigint, different = $6::bigint, settled = $7::bigint where ${mine} returning 1`,
    fail: `update ${sql.ledgers} l set running_until = null, retry_at = ${sql.now} + ${milliseconds('$3')}
      where ${mine} returning 1`,
    last: `select ${epochMs(`(${sql.now} - l.finished_at)`)} as finished_ago_ms, l.compared, l.missing, l.extra, l.different, l.settled
      from ${sql.ledgers} l where l.name = $1::text and l.finished_at is not null`,
  }
}
