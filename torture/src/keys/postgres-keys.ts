/** Latchkey's rows in PostgreSQL, beside the shop's own. */
import pg from 'pg'
import { postgresStore } from 'latchkey/stores/postgres'
import type { PostgresServer } from '../../../test/servers/postgres.ts'
import type { KeyRow } from '../check/facts.ts'
import { withClient } from '../collect.ts'
import type { KeyServer, LastWord, UnknownRow } from './key-server.ts'

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

/** The oldest: others may still be settled without a person. */
const oldestUnknownQuery = `select k.id, k.operation from latchkey.due d join latchkey.keys k on k.id = d.id
  where k.state = 4 order by d.since limit 1`

/** When a row became unknown, recorded by the database itself, independently of Latchkey. */
const unknownsTable = `create table unknowns (id uuid not null, since timestamptz not null);
create function keep_unknown() returns trigger language plpgsql as
  $$ begin insert into unknowns values (new.id, new.since); return null; end $$;
create trigger keep_unknown after insert or update of since on latchkey.due for each row execute function keep_unknown();`

export async function postgresKeys(server: PostgresServer): Promise<KeyServer> {
  const pool = new pg.Pool({ connectionString: server.url, max: 2 })
  await postgresStore({ pool }).migrate()
  await pool.query(unknownsTable)
  await pool.end()
  const rowsOf = async (text: string) => withClient(server.url, async client => (await client.query(text)).rows)
  return {
    url: server.url,
    lastWord: commit,
    kill: () => server.kill(),
    restart: () => server.restart(),
    moving: async () => Number((await rowsOf(movingQuery))[0]?.n),
    oldestUnknown: async (): Promise<UnknownRow | undefined> => (await rowsOf(oldestUnknownQuery).catch(() => []))[0],
    async readFacts() {
      const keys: (Omit<KeyRow, 'state'> & { state: number })[] = await rowsOf(keysQuery)
      return {
        keys: keys.map(row => ({ ...row, state: states[row.state] ?? 'unknown' })),
        proofs: await rowsOf(proofsQuery),
        unknowns: await rowsOf(unknownsQuery),
        parkedReceipts: (await rowsOf(parkedQuery)).map(({ key }: { key: string }) => key),
      }
    },
    stop: async () => undefined,
  }
}

/** A simple query message: `Q`, four bytes of length, the text. Drivers send COMMIT on its own. */
export const commit: LastWord = {
  name: 'commit',
  isIn: bytes => bytes[0] === 0x51 && bytes.subarray(5, 11).toString('latin1').toUpperCase() === 'COMMIT',
}
