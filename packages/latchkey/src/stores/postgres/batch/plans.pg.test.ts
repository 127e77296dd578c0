import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import type { Claim } from '../../../ports/store.ts'
import { postgresStore } from '../index.ts'
import { claimRequest } from '../../../../test/claim-request.ts'

const hourMs = 3_600_000

/** The plans that the server really used inside its functions, as it reports them itself. */
async function plansOf(url: string, schema: string, recordsLines = false): Promise<string[]> {
  const plans: string[] = []
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  pool.on('error', () => {})
  pool.on('connect', client => client.on('notice', ({ message }) => plans.push(message ?? '')))
  await pool.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
    set client_min_messages = log`)
  const plain = postgresStore({ pool, schema })
  const store = recordsLines ? plain.auditRecords.recording() : plain
  // From the sixth time on a session may keep the plan of a statement that has none of the functions' settings.
  for (let round = 0; round < 7; round += 1) {
    const results = await Promise.all(Array.from({ length: 5 }, () => store.claim(request())))
    const claims = results.map(result => (result as { readonly claim: Claim }).claim)
    await Promise.all(claims.map(claim => store.heartbeat(claim, 30_000)))
    await Promise.all(
      claims.map(claim => store.complete(claim, { status: 200, headers: [], body: undefined, version: 1 }, hourMs)),
    )
    await Promise.all(claims.map(({ id }) => store.claim(request(id))))
    await Promise.all(claims.map(({ id }) => store.read(id)))
    const alone = await store.claim(request())
    if (alone.kind === 'won')
      await store.complete(alone.claim, { status: 200, headers: [], body: undefined, version: 1 }, hourMs)
    const atomic = { ...request(), retentionMs: hourMs }
    await store.transactor?.transaction(async () => 'rollback', atomic)
  }
  await pool.end()
  return plans.filter(plan => plan.includes('Query Text') && /unnest|one_row|\(ids\)/.test(plan))
}

describePostgres('the plan of every batch', database => {
  const filled = async (schema: string, rows: number) => {
    const pool = new pg.Pool({ connectionString: database.url, max: 1 })
    pool.on('error', () => {})
    await postgresStore({ pool, schema }).migrate()
    if (rows > 0) {
      await pool.query(`
        insert into "${schema}".keys (id, claim_id, fence, created_at, granted_at, completed_at, expires_at, attempts, state,
          recovery, fingerprint, scope, operation)
        select gen_random_uuid(), gen_random_uuid(), 1, now(), now(), now(), now() + interval '1 day', 1, 2, 0, '\\x00', 's', 'o'
        from generate_series(1, ${rows});
        analyze "${schema}".keys`)
    }
    await pool.end()
  }

  it.each([
    ['new', 0, false],
    ['small', 20, false],
    ['large', 50_000, false],
    ['recorded', 50_000, true],
  ])('goes by the primary key on a %s table', async (name, rows, recordsLines) => {
    await filled(name, rows)
    const plans = await plansOf(database.url, name, recordsLines)
    for (const [what, plan] of Object.entries({
      claim: /Insert on keys.*\s*Conflict Resolution.*\s*Conflict Arbiter Indexes: keys_pkey\s*->\s*Function Scan on a/,
      'claim that looks first':
        /Insert on keys.*\s*Conflict.*\s*Conflict.*\s*InitPlan 1.*\s*->\s*Index Only Scan using keys_pkey/,
      'look after a claim': /Query Text: select k\.\* from .*keys k where k\.id = any \(ids\) and k\.claim_id/,
      look: /Query Text: select k\.\* from .*keys k where k\.id = any \(ids\)\s*Index Scan/,
      // The order of the array is the order of the locks.
      complete: /set state = 2[\s\S]*Update on keys k.*\s*->\s*Nested Loop.*\s*->\s*Function Scan on a/,
      heartbeat: /set locked_until = beaten_at[\s\S]*Update on keys k.*\s*->\s*Nested Loop.*\s*->\s*Function Scan on a/,
      'claim alone': /where s\.id = \$1::uuid/,
      'complete alone': /where k\.id = \$1::uuid/,
      'look of an atomic operation': /where k\.id = key_id/,
    })) {
      expect(plans.filter(text => plan.test(text)).length, what).toBeGreaterThan(0)
    }
    for (const plan of plans) {
      expect(plan).not.toMatch(/Seq Scan|Hash|Merge Join|Bitmap|Sort/)
      // Never all of the index: a session goes on with the plan that it made while the table was small.
      expect(plan.match(/Scan using keys_pkey on keys.*\s*Index Cond/g)?.length).toBe(plan.match(/Scan using/g)?.length)
    }
  })
})

const request = (id: string = randomUUID()) =>
  claimRequest({ identity: { id, scope: 'tenant', operation: 'payments.create' } })
