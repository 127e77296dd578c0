/**
 * Finds dead leases without an index on them, which would cost every claim and every completion. Rows granted before
 * the mark were not in progress at the last pass, and cannot be again without a younger grant: a pass reads young rows only.
 */
import type { RawNumber } from '../../shared/record-row.ts'
import { grantedAt, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'

/** Once an hour a pass reads all rows, as a safety net: a claim may have committed very late. */
const fullPassEveryS = 3_600
/** How long a claim may take from reading the clock to its commit and still be found above the mark. */
const commitLagS = 300

export interface PassRow {
  readonly now_s: RawNumber
  readonly next_s: RawNumber
}

export interface Passes {
  /** Seconds since 1970; null: read all rows. */
  mark(): number | null
  moveTo(pass: PassRow | undefined): void
}

export function markedPasses(): Passes {
  let markS: number | null = null
  let fullPassAtS = 0
  return {
    mark: () => markS,
    moveTo(pass) {
      if (pass === undefined) return
      const nowS = Number(pass.now_s)
      if (markS === null) fullPassAtS = nowS
      markS = nowS - fullPassAtS >= fullPassEveryS ? null : Number(pass.next_s)
    },
  }
}

/** `$2` is the mark. */
export function openRows(sql: Dialect, also = 'true'): string {
  return `open as materialized (
      select k.id, ${grantedAt} as granted_at, k.locked_until from ${sql.keys} k
      where k.state = ${state.in_progress} and ${grantedAt} >= coalesce(pg_catalog.to_timestamp($2::float8), '-infinity') and ${also}
    )`
}

/** The columns of `PassRow`, from `open`. */
export function passOver(sql: Dialect): string {
  return `pass as (
      select extract(epoch from t.now)::float8 as now_s, extract(epoch from least(t.now - interval '${commitLagS} seconds',
        -- A millisecond earlier: the number is a little coarser than the instant.
        (select pg_catalog.min(o.granted_at) from open o) - interval '1 millisecond'))::float8 as next_s
      from (select ${sql.now} as now) t
    )`
}
