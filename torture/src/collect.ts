/** Reads by SQL what is true at the end, and waits until all rows are at rest. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { factsFile } from './check-files.ts'
import type { Facts, KeyRow, Proof, Terms } from './check-facts.ts'

const states: readonly KeyRow['state'][] = ['pending', 'in_progress', 'completed', 'failed_retryable', 'unknown']

// A row's description is the client's key; in phased work the input holds it as well.
const keyColumn = `coalesce(k.description, i.input::json->>'key', k.id::text) as key`
const keysQuery = `select ${keyColumn}, k.operation, k.state, k.crashes,
  k.parked_at is not null as parked, coalesce(k.locked_until < clock_timestamp(), false) as "leaseDead", d.id is not null as listed
  from latchkey.keys k left join latchkey.due d on d.id = k.id left join latchkey.inputs i on i.id = k.id`

const proofsQuery = `select ${keyColumn}, e.source, e.verdict, e.applied, extract(epoch from e.at)::float8 * 1000 as at, e.effect_epoch as epoch
  from latchkey.evidence e join latchkey.keys k on k.id = e.key_id left join latchkey.inputs i on i.id = k.id`

const unknownsQuery = `select ${keyColumn}, extract(epoch from u.since)::float8 * 1000 as since
  from unknowns u join latchkey.keys k on k.id = u.id left join latchkey.inputs i on i.id = k.id`

const parkedQuery = `select convert_from(o.payload, 'UTF8')::json->>'key' as key
  from latchkey.outbox_parked p join latchkey.outbox o on o.id = p.id where p.parked_at is not null`

/** Rows that are owned, will be resumed or are being looked up; messages behind their cursor; and messages that wait for another try. */
const movingQuery = `select (select count(*) from latchkey.keys
    where parked_at is null and (state in (0, 1, 4) or (state = 3 and recovery = 2)))
  + (select count(*) from latchkey.outbox o join latchkey.outbox_lanes l on l.lane = o.lane
    where (o.xid, o.id) > (l.cursor_xid, l.cursor_id))
  + (select count(*) from latchkey.outbox_parked where parked_at is null and due_at is not null) as n`

/** When a row became unknown, recorded by the database itself, independently of Latchkey. */
export const unknownsTable = `create table unknowns (id uuid not null, since timestamptz not null);
create function keep_unknown() returns trigger language plpgsql as
  $$ begin insert into unknowns values (new.id, new.since); return null; end $$;
create trigger keep_unknown after insert or update of since on latchkey.due for each row execute function keep_unknown();`

export interface Collecting {
  readonly databaseUrl: string
  readonly directory: string
  readonly terms: Terms
}

export async function collectFacts({ databaseUrl, directory, terms }: Collecting): Promise<void> {
  await withClient(databaseUrl, async client => {
    const rows = async (text: string) => (await client.query(text)).rows
    const keys: (Omit<KeyRow, 'state'> & { state: number })[] = await rows(keysQuery)
    const proofs: Proof[] = await rows(proofsQuery)
    const facts: Facts = {
      terms,
      orders: await rows('select id, key from orders'),
      payments: await rows('select id, key from payments'),
      refunds: await rows('select id, key from refunds'),
      transfers: await rows('select id, key, runs from transfers'),
      receipts: await rows('select account, seq, key from receipts'),
      keys: keys.map(row => ({ ...row, state: states[row.state] ?? 'unknown' })),
      proofs,
      unknowns: await rows(unknownsQuery),
      parkedReceipts: (await rows(parkedQuery)).map(({ key }: { key: string }) => key),
    }
    writeFileSync(join(directory, factsFile), JSON.stringify(facts))
  })
}

/** Nothing owned, nothing waiting for another try. Returns what is left when the time is over. */
export async function drain(databaseUrl: string, limitMs: number): Promise<number> {
  const endMs = performance.now() + limitMs
  for (;;) {
    const left = await withClient(databaseUrl, async client =>
      Number((await client.query<{ n: string }>(movingQuery)).rows[0]?.n),
    )
    if (left === 0 || performance.now() > endMs) return left
    await delay(500)
  }
}

export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
