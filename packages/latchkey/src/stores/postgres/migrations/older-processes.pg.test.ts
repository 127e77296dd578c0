import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import type { ClaimRequest } from '../../../ports/store.ts'
import { packOutcome } from '../../shared/packed-outcome.ts'
import { postgresStore, type PostgresStore } from '../index.ts'
import { claimRequest } from '../../../../test/claim-request.ts'

const hourMs = 3_600_000
const answer = (body: string) => ({ status: 200, headers: [], body: Buffer.from(body), version: 1 })

describePostgres('a process of the release before, which shares the database while it is replaced', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    store = postgresStore({ pool })
    await store.migrate()
  })
  afterAll(() => pool.end())

  const one = async (text: string, values: unknown[]): Promise<Record<string, unknown> | undefined> =>
    (await pool.query<Record<string, unknown>>(text, values)).rows[0]

  /** As that release sends them. */
  const before = {
    claim: ({ identity, claimId, fingerprint }: ClaimRequest) =>
      one(
        `select k.claim_id from latchkey.claim_many($1::uuid[], $2::uuid[], $3::bytea[], $4::smallint[], $5::float8[], $6::float8[],
          $7::text[], $8::text[], $9::text[]) k`,
        [[identity.id], [claimId], [fingerprint], [0], [30_000], [hourMs], ['tenant'], ['payments.create'], [null]],
      ),
    complete: (id: string, claimId: string, body: string) =>
      one('select latchkey.complete_many($1::uuid[], $2::uuid[], $3::float8[], $4::bytea[])::text[] as written', [
        ...[[id], [claimId], [hourMs], [packOutcome(answer(body), 1)]],
      ]),
    heartbeat: (id: string, claimId: string) =>
      one('select latchkey.heartbeat_many($1::uuid[], $2::float8[], $3::uuid[], $4::float8[])::text[] as written', [
        ...[[id], [1], [claimId], [hourMs]],
      ]),
    read: (id: string) => one('select k.state, k.outcome from latchkey.read_many($1::uuid[]) k', [[id]]),
    reserve: (id: string) => one('select latchkey.reserve(1::bigint, $1::uuid) as reserved', [id]),
    recordFresh: (id: string, client: pg.PoolClient, began: string) =>
      client.query(
        `select latchkey.record_fresh($1::uuid, $2::uuid, 'same'::bytea, 1000, 'tenant', 'payments.create', null, $3::bytea, $4) as recorded`,
        [id, randomUUID(), packOutcome(answer('of the old one'), 1), began],
      ),
    outboxNext: () => pool.query(`select * from latchkey.outbox_next(0::smallint, 0::bigint, 'none', 10, null, null)`),
  }

  it('owns, renews and answers its rows, and they are replayed here', async () => {
    const asked = claimRequest()
    expect(await before.claim(asked)).toBeUndefined()
    expect(await store.claim({ ...asked, claimId: randomUUID() })).toMatchObject({
      kind: 'seen',
      record: { state: 'in_progress', claimId: asked.claimId },
    })
    expect(await before.heartbeat(asked.identity.id, asked.claimId)).toEqual({ written: null })
    expect(await before.complete(asked.identity.id, asked.claimId, 'of the old one')).toEqual({ written: null })
    const { outcome } = (await store.read(asked.identity.id)) ?? {}
    expect(Buffer.from(outcome?.body ?? []).toString()).toBe('of the old one')
  })

  it('sees the rows of the new one, running and answered, and is refused what it does not own', async () => {
    const asked = claimRequest()
    const result = await store.claim(asked)
    if (result.kind !== 'won') throw new Error(result.kind)
    const twin = { ...asked, claimId: randomUUID() }
    expect(await before.claim(twin)).toEqual({ claim_id: asked.claimId })
    expect(await before.complete(asked.identity.id, twin.claimId, 'never')).toEqual({ written: [] })
    await store.complete(result.claim, answer('of the new one'), hourMs)
    expect(await before.read(asked.identity.id)).toMatchObject({ state: 2 })
    expect(String((await before.reserve(asked.identity.id))?.reserved)).toMatch(/^tt/)
  })

  it('wins or loses a race for one key against the new one, and both know who has it', async () => {
    for (let round = 0; round < 20; round += 1) {
      const asked = claimRequest()
      const old = { ...asked, claimId: randomUUID() }
      const [mine, theirs] = await Promise.all([store.claim(asked), before.claim(old)])
      expect([mine.kind === 'won', theirs === undefined].filter(Boolean)).toHaveLength(1)
    }
  })

  it('records atomic work, which the new one finds', async () => {
    const asked = { ...claimRequest(), retentionMs: hourMs }
    const client = await pool.connect()
    await client.query('begin')
    const { rows } = await client.query('select latchkey.reserve(7::bigint, $1::uuid) as reserved', [asked.identity.id])
    const began = String((rows[0] as { reserved: string }).reserved).slice(2)
    expect((await before.recordFresh(asked.identity.id, client, began)).rows).toEqual([{ recorded: true }])
    await client.query('commit')
    client.release()
    expect(await store.claim(asked)).toMatchObject({ kind: 'seen', record: { state: 'completed' } })
    expect((await before.outboxNext()).rows).toEqual([])
  })
})
