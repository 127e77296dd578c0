/** What people did about the trouble before the measurement, each act with its line in the audit; and what the fleet says of itself. */
import { type Admin, type AdminRow, createAdmin } from 'latchkey/admin'
import type { Latchkey } from 'latchkey'
import type pg from 'pg'
import { eachOf, type Store } from './shop.ts'

export const people = 20
const reason = 'looked at it with the provider'

/** How many rows were taken over, annotated, parked and proposed: shares of the unknown ones. */
const shares = { take: 0.2, note: 0.1, park: 0.1, propose: 0.01 }

export async function actOnRows(latchkey: Latchkey<pg.PoolClient, unknown>): Promise<void> {
  // Some hundred acts of a person in a minute are more than a person may do.
  const admin = createAdmin({ latchkey, actsPerMinute: 1_000_000 })
  const rows = await unknownRows(admin)
  const on = (row: AdminRow) => ({ id: row.id, version: row.version, reason })
  const some = async (share: number, act: (row: AdminRow, n: number) => Promise<{ readonly kind: string }>) => {
    const chosen = rows.splice(0, Math.round(rows.length * share))
    await eachOf(chosen.length, async n => {
      const row = chosen[n]
      const { kind } = row === undefined ? { kind: 'missing' } : await act(row, n)
      if (kind !== 'done' && kind !== 'second-person-needed') throw new Error(`an act was refused: ${kind}`)
    })
  }
  await some(shares.take, (row, n) => admin.take(person(n), on(row)))
  await some(shares.note, (row, n) => admin.note(person(n), on(row)))
  await some(shares.park, (row, n) => admin.park(person(n), on(row)))
  const evidence = { kind: 'denial', reference: 'case 4711' } as const
  await some(shares.propose, (row, n) =>
    admin.settle(person(n), { ...on(row), effect: row.effect, answer: 'did_not_happen', evidence }),
  )
}

export function person(n: number) {
  return { who: { name: `person-${n % people}`, role: 'operator' as const }, source: 'library' as const }
}

async function unknownRows(admin: Admin): Promise<AdminRow[]> {
  const rows: AdminRow[] = []
  let after: string | undefined
  do {
    const page = await admin.work(person(0), { kind: 'unknown', limit: 100, ...(after === undefined ? {} : { after }) })
    if (page.kind !== 'found') throw new Error(`the queue was refused: ${page.kind}`)
    rows.push(...page.value.items)
    after = page.value.next
  } while (after !== undefined)
  return rows
}

/** Twenty processes with six workers each, and a day of rates by the minute. */
export async function reportFleet(store: Store, pool: pg.Pool): Promise<void> {
  const loops = ['sweeper', 'resumer', 'reconciler', 'relay', 'reaper', 'auditor']
  const detail = JSON.stringify({ quarantineMs: { 'payments.create': 600_000 } })
  const beats = Array.from({ length: 20 }, (_, n) =>
    loops.map(loop => ({
      ...{ process: `host-${n}`, loop, lastTurnAgoMs: 500, turns: 10_000, failures: 0, lastError: undefined },
      detail: loop === 'reconciler' ? detail : undefined,
    })),
  )
  await store.admin.beat(beats.flat())
  await pool.query(
    `insert into latchkey.rates (minute, operation, metric, count)
     select date_trunc('minute', now()) - interval '1 minute' * m, o, t, 100 from generate_series(0, 1439) m,
       unnest(array['orders.create', 'payments.create', 'refunds.create', 'transfers.create']) o,
       unnest(array['claimed', 'completed', 'replayed', 'refused', 'unknown']) t`,
  )
}
