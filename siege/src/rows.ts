/** Reads the tables at the end. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Rows } from './evidence.ts'
import { operations } from './operations.ts'
import { readRuns, type Run, runsById } from './runs.ts'

export const tables = `create table orders (id uuid not null, attempt int not null, fence bigint not null); create table steps (id uuid not null);`

// Rows that an enemy damaged are not the application's fault.
const rowsQuery = `select count(*) filter (where state = 4) as unknown, count(*) filter (where state in (0, 1)) as unfinished
  from latchkey.keys where scope not like '%enemy-bad-rows%'`

/** Waits until all rows are at rest, for at most `limitMs`. */
export async function settledRows(pool: pg.Pool, limitMs: number): Promise<Rows> {
  const endMs = performance.now() + limitMs
  for (;;) {
    const { rows } = await pool.query<Record<keyof Rows, string>>(rowsQuery)
    const found = { unknown: Number(rows[0]?.unknown), unfinished: Number(rows[0]?.unfinished) }
    if (found.unfinished === 0 || performance.now() > endMs) return found
    await delay(500)
  }
}

/** By identity: the runs that handlers recorded, and those that transactions committed. */
export async function allRuns(pool: pg.Pool, runsFile: string): Promise<ReadonlyMap<string, readonly Run[]>> {
  const { rows } = await pool.query<{ id: string; attempt: number; fence: string }>('select * from orders')
  const committed = rows.map(row => ({ ...row, operation: operations.atomic, fence: Number(row.fence) }))
  return runsById([...readRuns(runsFile), ...committed])
}
