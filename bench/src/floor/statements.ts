/** The table of the floor, and its three statements. */
import type pg from 'pg'
import type { Stored } from '../server/backends/backend.ts'
import type { Column } from './message.ts'

export interface Entry {
  /** A hash of scope, operation and key. */
  readonly id: Buffer
  readonly claimId: Buffer
  /** A hash of the body as it came. */
  readonly fingerprint: Buffer
  /** Status and body, once the handler has run. */
  answer: string
}

const [inProgress, completed] = [1, 2]
/** No worker takes over a claim here, so every generation is the first. */
const fence = 1

const table = `create table if not exists floor_keys (
  id uuid primary key, claim_id uuid not null, fingerprint uuid not null, expires_at timestamptz not null,
  locked_until timestamptz, fence integer not null, state smallint not null, answer bytea)`
const expiry = 'create index if not exists floor_keys_expiry on floor_keys (expires_at)'
const claims = 'unnest($1, $2, $3) with ordinality a (id, claim_id, fingerprint, place)'

const statements = {
  floor_claim: `(uuid[], uuid[], uuid[]) as insert into floor_keys (id, claim_id, fingerprint, expires_at, locked_until, fence, state)
    select id, claim_id, fingerprint, now() + interval '25 hours', now() + interval '30 seconds', ${fence}, ${inProgress}
    from ${claims} on conflict do nothing`,
  // A worker that lost its claim would match no row.
  floor_complete: `(uuid[], uuid[], bytea[]) as update floor_keys k set state = ${completed}, locked_until = null, answer = a.answer
    from unnest($1, $2, $3) a (id, claim_id, answer)
    where k.id = a.id and k.claim_id = a.claim_id and k.fence = ${fence} and k.state = ${inProgress}`,
  floor_read: `(uuid[], uuid[], uuid[]) as select a.place - 1, k.claim_id = a.claim_id, k.fingerprint = a.fingerprint, convert_from(k.answer, 'UTF8')
    from ${claims} join floor_keys k on k.id = a.id`,
}

export const claimColumns: readonly Column<Entry>[] = [
  { type: 'uuid', of: ({ id }) => id },
  { type: 'uuid', of: ({ claimId }) => claimId },
  { type: 'uuid', of: ({ fingerprint }) => fingerprint },
]
export const completionColumns: readonly Column<Entry>[] = [
  { type: 'uuid', of: ({ id }) => id },
  { type: 'uuid', of: ({ claimId }) => claimId },
  { type: 'bytea', of: ({ answer }) => answer },
]

export async function createTable(pool: pg.Pool): Promise<void> {
  await pool.query(`${table}; ${expiry}`)
}

/** Plans that are made once and always go by the index: what a batch costs must not hang on statistics. */
export async function prepare(client: pg.ClientBase): Promise<void> {
  const off = ['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin', 'jit']
  await client.query(off.map(name => `set ${name} = off`).join('; '))
  await client.query('set plan_cache_mode = force_generic_plan')
  for (const [name, text] of Object.entries(statements)) await client.query(`prepare ${name} ${text}`)
}

export async function floorStored(pool: pg.Pool): Promise<Stored> {
  const { rows } = await pool.query<{ rows: string; completed: string }>(
    `select count(*) as rows, count(*) filter (where state = ${completed} and answer is not null) as completed from floor_keys`,
  )
  return { rows: Number(rows[0]?.rows), completed: Number(rows[0]?.completed), businessRows: 0 }
}
