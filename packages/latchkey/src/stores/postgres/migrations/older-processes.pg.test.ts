import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { claimRequest } from '../../../../test/claim-request.ts'
import type { ClaimRequest } from '../../../ports/store.ts'
import { stepsFault } from '../../shared/migrations.ts'
import { packOutcome } from '../../shared/packed-outcome.ts'
import { postgresMigrations, postgresStore, type PostgresStore } from '../index.ts'
import { dialect } from '../sql/names.ts'
import { readSchema } from './check/read-schema.ts'

const hourMs = 3_600_000
const answer = (body: string) => ({ status: 200, headers: [], body: Buffer.from(body), version: 1 })
const claimMany8 = `select k.claim_id from latchkey.claim_many_8($1::uuid[], $2::uuid[], $3::bytea[], $4::smallint[], $5::float8[],
  $6::float8[], $7::text[], $8::text[], $9::text[]) k`
const completeMany8 =
  'select latchkey.complete_many_8($1::uuid[], $2::uuid[], $3::float8[], $4::bytea[])::text[] as written'

describePostgres('a process that knows the steps before the ninth', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    store = postgresStore({ pool })
  })
  afterAll(() => pool.end())

  /** As that process sends them. */
  const before = {
    claim: ({ identity, claimId, fingerprint }: ClaimRequest) =>
      pool.query(claimMany8, [
        ...[[identity.id], [claimId], [fingerprint], [1], [hourMs], [hourMs], ['tenant'], ['payments.create'], [null]],
      ]),
    complete: ({ identity, claimId }: ClaimRequest, body: string) =>
      pool.query(completeMany8, [[identity.id], [claimId], [hourMs], [packOutcome(answer(body), 1)]]),
  }

  it('leaves rows that are read, completed and granted again after the ninth', async () => {
    for (const { version, sql } of postgresMigrations()) if (version <= 8) await pool.query(sql)
    const [completed, running, granted, dead] = [claimRequest(), claimRequest(), claimRequest(), claimRequest()]
    for (const each of [completed, running, granted, dead]) await before.claim(each)
    await before.complete(completed, 'of the old one')
    await pool.query(
      `update latchkey.keys set created_at = created_at - interval '1 hour', attempts = 70000, crashes = 70000 where id = $1`,
      [granted.identity.id],
    )
    await pool.query('update latchkey.keys set locked_until = clock_timestamp() where id = $1', [dead.identity.id])
    await store.migrate()

    expect(await store.read(completed.identity.id)).toMatchObject({
      ...{ state: 'completed', attempts: 1, fence: 1, fingerprint: completed.fingerprint },
      outcome: { body: Buffer.from('of the old one') },
    })
    const claim = { id: running.identity.id, fence: 1, claimId: running.claimId }
    expect(await store.complete(claim, answer('of the new one'), hourMs)).toBe('written')
    const record = await store.read(granted.identity.id)
    expect(record).toMatchObject({ attempts: 32_767, crashes: 32_767, state: 'in_progress' })
    expect(record?.ageMs).toBeGreaterThanOrEqual(hourMs)
    const again = await store.claim({ ...dead, claimId: randomUUID() })
    expect(again).toMatchObject({ kind: 'won', from: 'dead-lease', attempt: 2, crashes: 1, claim: { fence: 2 } })

    const columns = `select id, granted_at is null as first_grant from latchkey.keys where id = any($1) order by first_grant`
    const { rows } = await pool.query(columns, [[completed.identity.id, granted.identity.id]])
    expect(rows).toEqual([
      { id: granted.identity.id, first_grant: false },
      { id: completed.identity.id, first_grant: true },
    ])
  })

  it('meets counters that stop at what their columns hold', async () => {
    await store.migrate()
    const asked = claimRequest({ recovery: 'rerun', leaseMs: 0 })
    await store.claim(asked)
    await pool.query('update latchkey.keys set attempts = 32767, crashes = 32767 where id = $1', [asked.identity.id])
    const again = await store.claim({ ...asked, claimId: randomUUID() })
    expect(again).toMatchObject({ kind: 'won', attempt: 32_767, crashes: 32_767, claim: { fence: 2 } })
    expect(await store.sweep({ limit: 10, id: asked.identity.id })).toMatchObject([{ to: 'failed_retryable' }])
    expect(await store.read(asked.identity.id)).toMatchObject({ crashes: 32_767 })
  })

  it('is refused after it, by its check and, while it runs, by the missing functions', async () => {
    await store.migrate()
    const { steps } = await readSchema(pool, dialect('latchkey'))
    const known = postgresMigrations().slice(0, 8)
    expect(stepsFault(known, steps)).toMatchObject({ kind: 'newer', step: { version: 9, name: 'narrow-rows' } })
    const asked = claimRequest()
    await expect(before.claim(asked)).rejects.toMatchObject({ code: '42883' })
    await expect(before.complete(asked, 'never')).rejects.toMatchObject({ code: '42883' })
  })
})
