import { expect } from 'vitest'
import type pg from 'pg'

/** A statement in the pool's database waits for a lock. */
export async function expectOneWaiting(pool: pg.Pool): Promise<void> {
  await expect
    .poll(
      async () => {
        const { rows } = await pool.query<{ waiting: number }>(
          `select count(*)::int as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
        return rows[0]?.waiting
      },
      { timeout: 30_000, interval: 10 },
    )
    .toBe(1)
}
