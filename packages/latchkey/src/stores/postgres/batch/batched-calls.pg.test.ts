import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { wasNeverSent } from '../../../ports/errors.ts'
import type { Claim, ClaimRequest, ClaimResult } from '../../../ports/store.ts'
import { postgresStore, type PostgresStore } from '../index.ts'
import { claimRequest } from '../../../../test/claim-request.ts'
import { countStatements } from '../../../../test/postgres/count-statements.ts'
import { expectOneWaiting } from '../../../../test/postgres/expect-one-waiting.ts'

const hourMs = 3_600_000
const many = 40

describePostgres('group commit', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  let sent: { readonly count: number }

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 8 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    sent = countStatements(pool)
    store = postgresStore({ pool })
    await store.migrate()
  })
  afterAll(() => pool.end())

  async function ownMany(count = many): Promise<Claim[]> {
    const results = await Promise.all(Array.from({ length: count }, () => store.claim(claimRequest())))
    return results.map(owned)
  }

  async function counted<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly statements: number }> {
    const before = sent.count
    return { value: await work(), statements: sent.count - before }
  }

  it('sends concurrent claims, heartbeats, completions, reads and replays in one statement each', async () => {
    const requests = Array.from({ length: many }, () => claimRequest())
    const claims = await counted(() => Promise.all(requests.map(each => store.claim(each))))
    const mine = claims.value.map(owned)
    const beats = await counted(() => Promise.all(mine.map(claim => store.heartbeat(claim, 60_000))))
    const ends = await counted(() => Promise.all(mine.map(claim => store.complete(claim, answer(claim.id), hourMs))))
    const reads = await counted(() => Promise.all(mine.map(claim => store.read(claim.id))))
    const again = requests.map(each => ({ ...each, claimId: randomUUID() }))
    const replays = await counted(() => Promise.all(again.map(each => store.claim(each))))

    expect(new Set(beats.value)).toEqual(new Set(['written']))
    expect(new Set(ends.value)).toEqual(new Set(['written']))
    for (const [index, claim] of mine.entries()) {
      const outcome = answer(claim.id)
      expect(claim).toEqual({ id: requests[index]?.identity.id, fence: 1, claimId: requests[index]?.claimId })
      expect(reads.value[index]).toMatchObject({ id: claim.id, state: 'completed', attempts: 1, outcome })
      expect(replays.value[index]).toMatchObject({ kind: 'seen', record: { id: claim.id, outcome } })
    }
    // At most one more: the first of a turn may leave before the others have arrived.
    for (const { statements } of [claims, beats, ends, reads, replays]) expect(statements).toBeLessThanOrEqual(2)
  })

  it('grants one identity to one of many that ask at once', async () => {
    const { identity } = claimRequest()
    const results = await Promise.all(Array.from({ length: many }, () => store.claim(claimRequest({ identity }))))
    expect(results.filter(({ kind }) => kind === 'won')).toHaveLength(1)
    const [winner] = results.filter(({ kind }) => kind === 'won').map(owned)
    for (const result of results) {
      if (result.kind === 'seen')
        expect(result.record).toMatchObject({ state: 'in_progress', claimId: winner?.claimId })
    }
  })

  it('claims new keys and sees old ones in one batch', async () => {
    const old = requests(many)
    await Promise.all(old.map(each => store.claim(each)))
    const again = old.map(each => ({ ...each, claimId: randomUUID() }))
    const results = await Promise.all([...again, ...requests(many)].map(each => store.claim(each)))
    expect(results.map(({ kind }) => kind)).toEqual([...old.map(() => 'seen'), ...old.map(() => 'won')])
  })

  it('stores completions although a claim of the same message cannot be', async () => {
    const mine = await ownMany(3)
    const impossible = store.claim(claimRequest({ expiresInMs: 1e300 }))
    const ends = Promise.all(mine.map(claim => store.complete(claim, answer(claim.id), hourMs).catch(String)))
    await expect(impossible).rejects.toMatchObject({ code: 'store-unavailable', cause: { code: '22008' } })
    expect(await ends).toEqual(mine.map(() => 'written'))
    const records = await Promise.all(mine.map(({ id }) => store.read(id)))
    expect(records.map(record => record?.state)).toEqual(mine.map(() => 'completed'))
  })

  it('splits a batch over a row that cannot be: the others have their answer', async () => {
    const impossible = claimRequest({ expiresInMs: 1e300 })
    const [bad, ...good] = await Promise.allSettled([impossible, ...requests(many)].map(each => store.claim(each)))
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'store-unavailable', cause: { code: '22008' } } })
    for (const result of good) expect(result).toMatchObject({ status: 'fulfilled', value: { kind: 'won' } })
  })

  /** Another process's claim of the same identity, in a transaction that is still open. */
  const uncommittedTwin = async ({ identity, fingerprint }: ClaimRequest) => {
    const twin = await pool.connect()
    await twin.query('begin')
    await twin.query(
      `insert into latchkey.keys (id, claim_id, fence, created_at, granted_at, expires_at, locked_until, attempts, state,
         recovery, fingerprint, scope, operation)
       values ($1, $2, 1, now(), now(), now() + interval '1 day', now() + interval '1 minute', 1, 1, 0, $3, 's', 'o')`,
      [identity.id, randomUUID(), fingerprint],
    )
    return twin
  }

  it('splits a batch over a row whose twin is not committed, and keeps nobody but the one waiting', async () => {
    const held = claimRequest()
    const twin = await uncommittedTwin(held)
    const waiting = store.claim(held)
    const others = await Promise.all(requests(many).map(each => store.claim(each)))
    expect(others.map(({ kind }) => kind)).toEqual(others.map(() => 'won'))
    // The sender is free for the next ones, too.
    expect((await store.claim(claimRequest())).kind).toBe('won')
    await twin.query('commit')
    twin.release()
    expect(await waiting).toMatchObject({ kind: 'seen', record: { state: 'in_progress', scope: 's' } })
  })

  it('goes on without a claim that is alone and waits for its twin', async () => {
    const held = claimRequest()
    const twin = await uncommittedTwin(held)
    const waiting = store.claim(held)
    await expectOneWaiting(pool)
    expect((await store.claim(claimRequest())).kind).toBe('won')
    await twin.query('commit')
    twin.release()
    expect(await waiting).toMatchObject({ kind: 'seen', record: { state: 'in_progress', scope: 's' } })
  })

  it('goes on without a completion that is alone and waits for a lock', async () => {
    const [held, other] = (await ownMany(2)) as [Claim, Claim]
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('select from latchkey.keys where id = $1 for update', [held.id])
    const waiting = store.complete(held, answer('held'), hourMs)
    await expectOneWaiting(pool)
    expect(await store.complete(other, answer('other'), hourMs)).toBe('written')
    await holder.query('commit')
    holder.release()
    expect(await waiting).toBe('written')
  })

  it('splits a batch of completions over a locked row', async () => {
    const [held, ...others] = await ownMany()
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('select from latchkey.keys where id = $1 for update', [held?.id])
    const waiting = store.complete(held as Claim, answer('held'), hourMs)
    const written = await Promise.all(others.map(claim => store.complete(claim, answer(claim.id), hourMs)))
    expect(new Set(written)).toEqual(new Set(['written']))
    await holder.query('commit')
    holder.release()
    expect(await waiting).toBe('written')
  })

  it('completes a row that a heartbeat moved while its batch waited for the lock', async () => {
    const claims = await ownMany()
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query(`update latchkey.keys set locked_until = locked_until + interval '1 second' where id = $1`, [
      claims[many >> 1]?.id,
    ])
    const ends = Promise.all(claims.map(claim => store.complete(claim, answer(claim.id), hourMs)))
    await expectOneWaiting(pool)
    await holder.query('commit')
    holder.release()
    expect(new Set(await ends)).toEqual(new Set(['written']))
    const records = await Promise.all(claims.map(({ id }) => store.read(id)))
    expect(records.map(record => record?.outcome)).toEqual(claims.map(({ id }) => answer(id)))
  })

  it('tells each owner its own end: written, repeated, late, lost', async () => {
    const [completed, unknown, stale, ...fresh] = (await ownMany(6)) as [Claim, Claim, Claim, ...Claim[]]
    await store.complete(completed, answer('first'), hourMs)
    await store.fail(unknown, { to: 'unknown', errorCode: 'E', dueInMs: 0 })
    const replaced = { ...stale, claimId: randomUUID() }
    const ends = await Promise.all(
      [completed, unknown, replaced, ...fresh].map(claim => store.complete(claim, answer('then'), hourMs)),
    )
    expect(ends).toEqual(['written', 'written', 'claim-lost', 'written', 'written', 'written'])
    expect(await store.read(completed.id)).toMatchObject({ outcome: answer('first') })
    expect(await store.read(unknown.id)).toMatchObject({ state: 'completed', outcome: answer('then') })
    const beats = await Promise.all([completed, replaced, stale].map(claim => store.heartbeat(claim, 1_000)))
    expect(beats).toEqual(['claim-lost', 'claim-lost', 'written'])
  })

  it('writes nothing in a batch for who has another fence, or whose row a person has settled', async () => {
    const [granted, settled, fresh] = (await ownMany(3)) as [Claim, Claim, Claim]
    await pool.query('update latchkey.keys set fence = 2 where id = $1', [granted.id])
    await store.fail(settled, { to: 'unknown', errorCode: 'E', dueInMs: 0 })
    const act = { by: 'on-call', reason: 'the provider says so' }
    await store.settle(settled.id, { kind: 'happened', outcome: answer('settled') }, act, hourMs)
    const beats = await Promise.all([granted, settled, fresh].map(claim => store.heartbeat(claim, 1_000)))
    expect(beats).toEqual(['claim-lost', 'claim-lost', 'written'])
    const ends = await Promise.all(
      [granted, settled, fresh].map(claim => store.complete(claim, answer('late'), hourMs)),
    )
    expect(ends).toEqual(['claim-lost', 'claim-lost', 'written'])
    expect(await store.read(granted.id)).toMatchObject({ state: 'in_progress', fence: 2, outcome: undefined })
    expect(await store.read(settled.id)).toMatchObject({ state: 'completed', outcome: answer('settled') })
    for (const { id } of [granted, settled]) {
      const { evidence } = await store.inspect(id)
      expect(evidence.at(-1)).toMatchObject({ source: 'late-owner', applied: false })
    }
  })

  it('leaves to the statement for one row what a batch cannot decide', async () => {
    const dead = claimRequest({ recovery: 'rerun', leaseMs: 0 })
    const failed = claimRequest()
    const expired = claimRequest()
    const large = claimRequest()
    await store.claim(dead)
    await store.fail(owned(await store.claim(failed)), { to: 'failed_retryable', errorCode: 'E', dueInMs: 0 })
    await store.complete(owned(await store.claim(expired)), answer('old'), hourMs)
    await pool.query('update latchkey.keys set expires_at = clock_timestamp() where id = $1', [expired.identity.id])
    const body = Buffer.alloc(5_000, 'x')
    await store.complete(owned(await store.claim(large)), { ...answer(''), body }, hourMs)
    const again = [dead, failed, expired, large, claimRequest()].map(each => ({ ...each, claimId: randomUUID() }))
    expect(await Promise.all(again.map(each => store.claim(each)))).toMatchObject([
      { kind: 'won', from: 'dead-lease', attempt: 2, crashes: 1, claim: { fence: 2 } },
      { kind: 'won', from: 'failed_retryable', attempt: 2, claim: { fence: 2 } },
      { kind: 'won', from: 'expired', attempt: 1, claim: { fence: 2 } },
      { kind: 'seen', record: { state: 'completed', outcome: { body } } },
      { kind: 'won', from: 'none', claim: { fence: 1 } },
    ])
    expect(
      (await Promise.all([store.read(large.identity.id), store.read(randomUUID())])).map(each => each?.outcome?.body),
    ).toEqual([body, undefined])
  })

  it('finds the row of an identity that is written in another way', async () => {
    const asked = claimRequest()
    const [granted] = await Promise.all([store.claim(asked), store.claim(claimRequest())])
    const id = asked.identity.id.toUpperCase()
    const again = { ...asked, identity: { ...asked.identity, id }, claimId: randomUUID() }
    const [seen] = await Promise.all([store.claim(again), store.claim(claimRequest())])
    expect(seen).toMatchObject({ kind: 'seen', record: { claimId: asked.claimId } })
    const [record] = await Promise.all([store.read(id), store.read(randomUUID())])
    expect(record).toMatchObject({ claimId: asked.claimId })
    const mine = { ...owned(granted), id }
    expect(await Promise.all([store.heartbeat(mine, 1_000), store.heartbeat(mine, 1_000)])).toEqual([
      'written',
      'written',
    ])
  })

  it('goes alone with what is no uuid, and fails alone', async () => {
    const wrong = claimRequest({ identity: { id: 'a,b', scope: 's', operation: 'o' } })
    const [bad, good] = await Promise.allSettled([store.claim(wrong), store.claim(claimRequest())])
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'store-unavailable' } })
    expect(good).toMatchObject({ status: 'fulfilled', value: { kind: 'won' } })
  })

  it('refuses what comes over the limit, and sends nothing that nobody waits for any more', async () => {
    const few = new pg.Pool({ connectionString: database.url, max: 1 })
    few.on('error', () => {})
    const slow = postgresStore({ pool: few, batching: { openMax: 10, timeoutMs: 300 } })
    // The pool's only connection is out: nothing can be sent.
    const taken = await few.connect()
    const asked = Array.from({ length: 12 }, (_, n) => ofScope(`tenant-${n}`))
    const results = await Promise.allSettled(asked.map(each => slow.claim(each)))
    const refused = results.map(result => (result.status === 'rejected' ? result.reason.code : 'won'))
    // None of them was sent, and so none is in doubt: ten had no connection, two had no room.
    expect(refused.filter(code => code === 'overloaded')).toHaveLength(2)
    expect(refused.filter(code => code === 'store-unavailable')).toHaveLength(10)
    expect(results.map(result => result.status === 'rejected' && wasNeverSent(result.reason))).not.toContain(false)
    const messages = results.map(result => (result.status === 'rejected' ? String(result.reason) : ''))
    expect(messages.filter(message => message.includes('already open'))).toHaveLength(2)
    taken.release()
    expect((await slow.claim(claimRequest())).kind).toBe('won')
    const { rows } = await pool.query('select id from latchkey.keys where id = any($1)', [
      asked.map(each => each.identity.id),
    ])
    expect(rows).toEqual([])
    await few.end()
  })

  it('gives up a batch that is not answered, with its connection, and goes on with the next', async () => {
    const own = new pg.Pool({ connectionString: database.url, max: 2 })
    own.on('error', () => {})
    const slow = postgresStore({ pool: own, batching: { timeoutMs: 300 } })
    const blocker = await pool.connect()
    const [claim] = await ownMany(1)
    // A lock of the whole table is waited for as long as lock_timeout says, so a function that sleeps stands in its way.
    await blocker.query(`alter function latchkey.heartbeat_many_9 rename to heartbeat_kept;
      create function latchkey.heartbeat_many_9(uuid[], float8[], uuid[], float8[]) returns uuid[] language sql as
        $$ select null::uuid[] from pg_sleep(30) $$`)
    await expect(slow.heartbeat(claim as Claim, 1_000)).rejects.toMatchObject({
      code: 'store-unavailable',
      message: 'PostgreSQL did not answer within 300 ms',
    })
    expect(own.totalCount).toBe(0)
    await blocker.query(`drop function latchkey.heartbeat_many_9;
      alter function latchkey.heartbeat_kept rename to heartbeat_many_9`)
    blocker.release()
    expect(await slow.heartbeat(claim as Claim, 1_000)).toBe('written')
    await own.end()
  })

  it('is refused with limits that are none', () => {
    for (const batching of [{ sizeMax: 0 }, { openMax: -1 }, { timeoutMs: Number.NaN }]) {
      expect(() => postgresStore({ pool, batching })).toThrow(expect.objectContaining({ code: 'misconfigured' }))
    }
  })
})

function owned(result: ClaimResult): Claim {
  if (result.kind !== 'won') throw new Error('expected the claim to be granted')
  return result.claim
}

function answer(text: string) {
  return { status: 201, headers: [['content-type', 'text/plain'] as const], body: Buffer.from(text), version: 1 }
}

function ofScope(scope: string): ClaimRequest {
  return claimRequest({ identity: { id: randomUUID(), scope, operation: 'payments.create' } })
}

function requests(count: number): ClaimRequest[] {
  return Array.from({ length: count }, () => claimRequest())
}
