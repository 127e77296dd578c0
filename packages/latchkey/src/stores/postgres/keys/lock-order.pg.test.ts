import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { claimRequest } from '../../../../test/claim-request.ts'
import type { Claim, ClaimRequest } from '../../../ports/store.ts'
import { postgresStore, type PostgresStore } from '../index.ts'
import { dialect } from '../sql/names.ts'
import { expectOneWaiting } from '../../../../test/postgres/expect-one-waiting.ts'

const hourMs = 3_600_000
const answer = { status: 200, headers: [], body: Buffer.from('done'), version: 1 }
const { claimMany, completeMany, heartbeatMany } = dialect('latchkey').functions
const insertTwin = `insert into latchkey.keys (id, claim_id, fence, created_at, granted_at, expires_at, locked_until, attempts, state,
    recovery, fingerprint, scope, operation)
  values ($1, gen_random_uuid(), 1, now(), now(), now() + interval '1 day', now() + interval '1 minute', 1, 1, 0, 'same', 's', 'o')`

describePostgres('a batch, and others that want the same rows', database => {
  const pools: pg.Pool[] = []
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>

  const openPool = (max: number, options?: string) => {
    const opened = new pg.Pool({ connectionString: database.url, max, ...(options === undefined ? {} : { options }) })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    opened.on('error', () => {})
    pools.push(opened)
    return opened
  }
  beforeAll(async () => {
    pool = openPool(8)
    store = postgresStore({ pool, batching: { timeoutMs: 60_000 } })
    await store.migrate()
  })
  afterAll(async () => void (await Promise.all(pools.map(each => each.end()))))

  const setLockTimeout = async (limit: string) => {
    for (const name of [claimMany, completeMany, heartbeatMany]) {
      await pool.query(`alter function ${name} set lock_timeout = '${limit}'`)
    }
  }
  /** As long as it takes to see where a batch waits. */
  const waitLong = () => setLockTimeout('60s')
  const waitShortly = () => setLockTimeout('50ms')
  const unlocked = async (ids: readonly string[]) => {
    const text = 'select id from latchkey.keys where id = any($1) for update skip locked'
    const { rows } = await pool.query<{ id: string }>(text, [ids])
    return rows.map(({ id }) => id).toSorted()
  }

  it.each([
    ['completions', (claim: Claim) => store.complete(claim, answer, hourMs)],
    ['heartbeats', (claim: Claim) => store.heartbeat(claim, 60_000)],
  ])('of %s locks them in the order of their identities, whatever order the calls came in', async (_, write) => {
    await waitLong()
    const claims = await own(store, 9)
    const ids = claims.map(({ id }) => id).toSorted()
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('select from latchkey.keys where id = $1 for update', [ids[4]])
    const byId = claims.toSorted((a, b) => (a.id > b.id ? -1 : 1))
    const ends = Promise.all(byId.map(write))
    await expectOneWaiting(pool)
    const free = await unlocked(ids)
    await holder.query('commit')
    holder.release()
    expect(await ends).toEqual(ids.map(() => 'written'))
    await waitShortly()
    expect(free).toEqual(ids.slice(5))
  })

  it.each([
    ['that looks first', true],
    ['that does not look', false],
  ])('of claims %s inserts in the order of the identities', async (_, looks) => {
    const another = postgresStore({ pool, batching: { timeoutMs: 60_000 } })
    // A replay in a batch makes the next ones look first.
    const old = [claimRequest(), claimRequest()]
    for (const round of looks ? [1, 2] : []) await claimAll(another, old, round)
    await waitLong()
    const requests = Array.from({ length: 5 }, () => claimRequest())
    const ids = requests.map(({ identity }) => identity.id).toSorted()
    const twin = await pool.connect()
    await twin.query('begin')
    await twin.query(insertTwin, [ids[2]])
    const descending = requests.toSorted((a, b) => (a.identity.id > b.identity.id ? -1 : 1))
    const results = Promise.all(descending.map(each => another.claim(each)))
    await expectOneWaiting(pool)
    const mayInsert: boolean[] = []
    for (const id of ids) mayInsert.push(await canInsert(id))
    await twin.query('commit')
    twin.release()
    expect((await results).map(({ kind }) => kind)).toEqual(['won', 'won', 'seen', 'won', 'won'])
    await waitShortly()
    expect(mayInsert).toEqual([false, false, false, true, true])
  })

  /** False: another transaction has inserted it and has not committed. Writes nothing. */
  async function canInsert(id: string | undefined): Promise<boolean> {
    const client = await pool.connect()
    try {
      await client.query(`begin; set local lock_timeout = '20ms'`)
      return await client.query(insertTwin, [id]).then(
        () => true,
        () => false,
      )
    } finally {
      await client.query('rollback')
      client.release()
    }
  }

  async function expectNoDeadlock(processes: readonly pg.Pool[]): Promise<void> {
    // A session reports what it has counted when it ends.
    await Promise.all(processes.map(each => each.end()))
    for (const each of processes) pools.splice(pools.indexOf(each), 1)
    const sessions = `select count(*)::int as n from pg_stat_activity where datname = current_database() and backend_type = 'client backend'`
    const openSessions = async () => (await pool.query<{ n: number }>(sessions)).rows[0]?.n
    await expect.poll(openSessions, { timeout: 30_000, interval: 50 }).toBeLessThanOrEqual(8)
    const { rows } = await pool.query(
      'select deadlocks::int as n from pg_stat_database where datname = current_database()',
    )
    expect(rows).toEqual([{ n: 0 }])
  }

  it('never waits in a circle with the batches of another process', async () => {
    // Found before the wait for a lock is given up, so that every circle is counted.
    const processes = [openPool(4, '-c deadlock_timeout=5ms'), openPool(4, '-c deadlock_timeout=5ms')]
    const [one, other] = processes.map(each => postgresStore({ pool: each })) as [typeof store, typeof store]
    for (let round = 0; round < 30; round += 1) {
      const claims = await own(one, 40)
      const backwards = claims.toReversed()
      const ends = await Promise.all([
        ...claims.map(claim => one.heartbeat(claim, 60_000)),
        ...backwards.map(claim => other.heartbeat(claim, 60_000)),
        ...backwards.slice(0, 20).map(claim => one.complete(claim, answer, hourMs)),
        ...claims.slice(0, 20).map(claim => other.complete(claim, answer, hourMs)),
      ])
      expect(ends.slice(80)).toEqual(claims.map(() => 'written'))
    }
    await expectNoDeadlock(processes)
  })

  it('never waits in a circle with a process that asks for the keys which this one completes', async () => {
    const processes = [openPool(4, '-c deadlock_timeout=5ms'), openPool(4, '-c deadlock_timeout=5ms')]
    const [one, other] = processes.map(each => postgresStore({ pool: each })) as [typeof store, typeof store]
    const crossed = async (by: typeof store, mine: readonly Claim[], theirs: readonly Claim[]) => {
      const asked = theirs.map(({ id }) => claimRequest({ identity: { id, scope: 's', operation: 'o' } }))
      const ends = mine.map(claim => by.complete(claim, answer, hourMs))
      const looks = asked.map(each => by.claim(each))
      expect(new Set(await Promise.all(ends))).toEqual(new Set(['written']))
      expect(new Set((await Promise.all(looks)).map(({ kind }) => kind))).toEqual(new Set(['seen']))
    }
    for (let round = 0; round < 40; round += 1) {
      const [mine, theirs] = await Promise.all([own(one, 20), own(other, 20)])
      await Promise.all([crossed(one, mine, theirs), crossed(other, theirs, mine)])
    }
    await expectNoDeadlock(processes)
  })

  it('holds no row of its own while a claim of the same message waits for another process', async () => {
    await waitLong()
    const fresh = postgresStore({ pool: openPool(4), batching: { timeoutMs: 60_000 } })
    const [mine, theirs] = (await own(store, 2)) as [Claim, Claim]
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('update latchkey.keys set attempts = 2 where id = $1', [theirs.id])
    const end = fresh.complete(mine, answer, hourMs)
    const look = fresh.claim(claimRequest({ identity: { id: theirs.id, scope: 's', operation: 'o' } }))
    await expectOneWaiting(pool)
    const free = await unlocked([mine.id])
    await holder.query('rollback')
    holder.release()
    expect([await end, (await look).kind]).toEqual(['written', 'seen'])
    await waitShortly()
    expect(free).toEqual([mine.id])
  })

  it('answers a replay whose row another transaction is changing, and the next time without a wait', async () => {
    const asked = claimRequest()
    for (const claim of await claimAll(store, [asked])) await store.complete(claim, answer, hourMs)
    const others = openPool(4)
    let checkouts = 0
    others.on('acquire', () => void (checkouts += 1))
    const another = postgresStore({ pool: others })
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('update latchkey.keys set attempts = 2 where id = $1', [asked.identity.id])
    /** How many connections each batch took. */
    const statements: number[] = []
    const kinds: string[][] = []
    for (let batch = 0; batch < 2; batch += 1) {
      checkouts = 0
      const requests = [{ ...asked, claimId: randomUUID() }, claimRequest()]
      kinds.push((await Promise.all(requests.map(each => another.claim(each)))).map(({ kind }) => kind))
      statements.push(checkouts)
    }
    await holder.query('rollback')
    holder.release()
    expect(kinds).toEqual([
      ['seen', 'won'],
      ['seen', 'won'],
    ])
    // The batch that did not look was refused, and each of its claims was sent alone. The next may find the connection of the first.
    expect(statements[0]).toBe(3)
    expect(statements[1]).toBeLessThanOrEqual(1)
  })

  it('answers a replay that a batch did not look for, and neither locks nor writes anything for it', async () => {
    const requests = Array.from({ length: 3 }, () => claimRequest())
    for (const claim of await claimAll(store, requests)) await store.complete(claim, answer, hourMs)
    const client = await pool.connect()
    await client.query('begin')
    const { rows } = await client.query(
      `select k.id from ${claimMany}($1, $2, $3, $4, $5, $6, $7, $8, $9, false) k order by k.id`,
      columnsOf(requests),
    )
    // A transaction gets its number with the first row that it locks or writes.
    const written = await client.query('select pg_current_xact_id_if_assigned() as number')
    await client.query('rollback')
    client.release()
    expect(rows.map(row => row.id)).toEqual(requests.map(({ identity }) => identity.id).toSorted())
    expect(written.rows).toEqual([{ number: null }])
  })
})

async function own(store: PostgresStore<pg.PoolClient>, count: number): Promise<Claim[]> {
  return claimAll(
    store,
    Array.from({ length: count }, () => claimRequest()),
  )
}

/** The claims that were granted. From the second round on by other claims of the same keys. */
async function claimAll(
  store: PostgresStore<pg.PoolClient>,
  requests: readonly ClaimRequest[],
  round = 1,
): Promise<Claim[]> {
  const asked = round === 1 ? requests : requests.map(each => ({ ...each, claimId: randomUUID() }))
  const results = await Promise.all(asked.map(each => store.claim(each)))
  return results.flatMap(result => (result.kind === 'won' ? [result.claim] : []))
}

/** As a batch sends them, of other claims. */
function columnsOf(requests: readonly ClaimRequest[]): unknown[] {
  const each = <T>(value: (request: ClaimRequest) => T) => requests.map(value)
  return [
    each(({ identity }) => identity.id),
    each(() => randomUUID()),
    each(({ fingerprint }) => fingerprint),
    each(() => 0),
    each(({ leaseMs }) => leaseMs),
    each(({ expiresInMs }) => expiresInMs),
    each(({ identity }) => identity.scope),
    each(({ identity }) => identity.operation),
    each(() => null),
  ]
}
