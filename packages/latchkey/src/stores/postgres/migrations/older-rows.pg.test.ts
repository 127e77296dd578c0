import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import type { FoundVerdict, Subject } from '../../../ports/reconciliation.ts'
import type { Claim } from '../../../ports/store.ts'
import { postgresMigrations, postgresStore, type PostgresStore } from '../index.ts'

const hourMs = 3_600_000
const answer = { status: 201, headers: [], body: Buffer.from('found'), version: 1 }
const applying = { quarantineMs: hourMs, retentionMs: hourMs }
const states = { completed: 2, unknown: 4 } as const
const recoveries = { hold: 0, resume: 2 } as const

describePostgres('rows from before reconciliation', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>

  async function insertKey(state: keyof typeof states, recovery: keyof typeof recoveries): Promise<Claim> {
    const claim = { id: randomUUID(), fence: 3, claimId: randomUUID() }
    await pool.query(
      `insert into latchkey.keys (id, claim_id, fence, created_at, granted_at, completed_at, expires_at, attempts, state, recovery,
        fingerprint, scope, operation)
       values ($1, $2, 3, now() - interval '1 hour', now(), case when $3::int = 2 then now() end, now() + interval '1 day', 1,
        $3::int, $4, '\\x00', 's', 'o')`,
      [claim.id, claim.claimId, states[state], recoveries[recovery]],
    )
    return claim
  }
  const oldDue = (id: string) =>
    pool.query(
      `insert into latchkey.due (id, cause, since, look_up_at, quarantine_until)
       values ($1, 'lease-expired', now() - interval '2 minutes', now() + interval '8 minutes', now() + interval '8 minutes')`,
      [id],
    )

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    for (const { version, sql } of postgresMigrations()) if (version <= 3) await pool.query(sql)
    store = postgresStore({ pool })
  })
  afterAll(() => pool.end())

  it('are looked up, settled and read as new ones are', async () => {
    const guarded = await insertKey('unknown', 'hold')
    const phased = await insertKey('unknown', 'resume')
    await oldDue(guarded.id)
    await oldDue(phased.id)
    await pool.query(`insert into latchkey.inputs (id, version, input) values ($1, 1, '{}')`, [phased.id])
    await pool.query(
      `insert into latchkey.steps (id, position, name, kind, state, opened_at) values ($1, 0, 'charge', 1, 0, now())`,
      [phased.id],
    )
    const settled = await insertKey('completed', 'hold')
    await pool.query(
      `insert into latchkey.evidence (key_id, fence, claim_id, source, verdict, applied, at)
       values ($1, 3, $2, 'operator', 'happened', true, now())`,
      [settled.id, settled.claimId],
    )
    await store.migrate()

    const query = { operation: 'o', leaseMs: hourMs, limit: 10 }
    // The quarantine of the old row is nobody's any more: when to look first is for the look-up to say.
    expect(await store.reconciliation.lookups({ ...query, firstInMs: hourMs })).toEqual([])
    const lookups = await store.reconciliation.lookups({ ...query, firstInMs: 60_000 })
    expect(lookups.map(({ id, fence, tries, effect }) => ({ id, fence, tries, effect }))).toEqual(
      expect.arrayContaining([
        { id: guarded.id, fence: 3, tries: 1, effect: undefined },
        { id: phased.id, fence: 3, tries: 1, effect: { position: 0, name: 'charge', epoch: 0 } },
      ]),
    )
    const settle = async (subject: Subject, verdict: FoundVerdict) => {
      const kept = await store.reconciliation.keep(subject, { source: 'look-up', ref: 'r', verdict })
      return 'evidenceId' in kept ? store.reconciliation.apply(kept.evidenceId, applying) : kept
    }
    expect(await settle({ id: guarded.id, effect: undefined }, { kind: 'happened', outcome: answer })).toMatchObject({
      to: 'completed',
    })
    const effect = { position: 0, name: 'charge', epoch: 0 }
    expect(await settle({ id: phased.id, effect }, { kind: 'happened', value: '1' })).toMatchObject({ to: 'pending' })
    expect(await store.steps?.readJournal(phased.id)).toMatchObject({ overdue: false, steps: [{ state: 'done' }] })
    expect(await store.resumable({ limit: 10 })).toMatchObject([{ identity: { id: phased.id } }])

    // The answer that is there is a person's, so its owner is told that it lost.
    expect(await store.complete(settled, answer, hourMs)).toBe('claim-lost')
    const { record, evidence } = await store.inspect(settled.id)
    expect(record).toMatchObject({ gone: false, expired: false })
    expect(evidence).toMatchObject([
      { source: 'operator', applied: true, effect: undefined },
      { source: 'late-owner', applied: false },
    ])
  })

  it('are settled also where their queue entry and evidence have only what was there before', async () => {
    await store.migrate()
    const claim = await insertKey('unknown', 'hold')
    await oldDue(claim.id)
    await pool.query(
      `insert into latchkey.evidence (key_id, fence, claim_id, source, verdict, applied, at, status, version, headers)
       values ($1, 3, $2, 'late-owner', 'happened', false, now(), 200, 1, '[]')`,
      [claim.id, claim.claimId],
    )
    expect(await store.reconciliation.unknowns()).toMatchObject([{ operation: 'o', count: 1, parked: 0 }])
    const verdict: FoundVerdict = { kind: 'happened', outcome: answer }
    await store.reconciliation.keep({ id: claim.id, effect: undefined }, { source: 'ledger', ref: 'r', verdict })
    const [waiting] = await store.reconciliation.waiting({ limit: 10 })
    expect(await store.reconciliation.apply(waiting?.evidenceId ?? '', applying)).toMatchObject({ to: 'completed' })
    expect((await store.inspect(claim.id)).evidence.map(({ applied }) => applied)).toEqual([false, true])
  })
})
