import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import type { AtomicRequest, ClaimRequest } from '../../../ports/store.ts'
import { postgresMigrations, postgresStore, type PostgresStore } from '../index.ts'
import { claimRequest } from '../../../../test/claim-request.ts'

const hourMs = 3_600_000

describePostgres('the check of the store', database => {
  const role = `r_${randomBytes(8).toString('hex')}`
  let owner: pg.Pool
  let limited: pg.Pool

  const poolOf = (url: string, options?: string) => {
    const pool = new pg.Pool({ connectionString: url, max: 5, ...(options === undefined ? {} : { options }) })
    pool.on('error', () => {})
    return pool
  }
  const limitedUrl = () => {
    const url = new URL(database.url)
    url.username = role
    return url.href
  }
  const grant = async (schema: string) => {
    await postgresStore({ pool: owner, schema }).migrate()
    await owner.query(`
      grant usage on schema "${schema}" to ${role};
      grant select on "${schema}".migrations to ${role};
      grant select, insert, update on "${schema}".keys to ${role};
      grant select, insert on "${schema}".evidence to ${role};
      grant select, insert, update, delete on "${schema}".outcomes, "${schema}".due, "${schema}".inputs,
        "${schema}".steps, "${schema}".waiting to ${role};
      grant insert on "${schema}".outbox to ${role}`)
  }

  beforeAll(async () => {
    owner = poolOf(database.url)
    await owner.query(`create role ${role} login`)
    limited = poolOf(limitedUrl())
  })
  afterAll(async () => {
    await limited.end()
    await owner.query(`drop owned by ${role}; drop role ${role}`)
    await owner.end()
  })

  it('finds a schema that is not there, one that is empty and one that is old, and what cures them', async () => {
    const store = postgresStore({ pool: owner, schema: 'life' })
    expect(await store.check()).toMatchObject({ kind: 'not-migrated', message: /no such schema.*store\.migrate\(\)/ })
    await owner.query('create schema life')
    expect(await store.check()).toMatchObject({ kind: 'not-migrated', message: /none of them/ })
    for (const { sql } of postgresMigrations('life').slice(0, 7)) await owner.query(sql)
    expect(await store.check()).toMatchObject({ kind: 'not-migrated', message: /its last step is 7/ })
    await store.migrate()
    expect(await store.check()).toEqual({ kind: 'fit' })
  })

  it('asks no more once it was fit', async () => {
    const store = postgresStore({ pool: owner, schema: 'remembered' })
    await store.migrate()
    expect(await store.check()).toEqual({ kind: 'fit' })
    await owner.query('drop schema remembered cascade')
    expect(await store.check()).toEqual({ kind: 'fit' })
  })

  it('finds a function that somebody dropped', async () => {
    const store = postgresStore({ pool: owner, schema: 'dropped' })
    await store.migrate()
    await owner.query('drop function dropped.claim_many_9')
    expect(await store.check()).toMatchObject({ kind: 'not-migrated', message: /"dropped"\.claim_many_9/ })
  })

  it('is fit for a role that has the rights that requests need, and no more', async () => {
    await grant('enough')
    const store = postgresStore({ pool: limited, schema: 'enough' })
    expect(await store.check()).toEqual({ kind: 'fit' })
    await store.migrate()
    await everythingThatRequestsDo(store)
  })

  it.each([
    ['usage on schema missing', 'grant usage on schema "missing"'],
    ['select on missing.migrations', 'grant select on "missing".migrations'],
    ['update on missing.keys', 'grant update on "missing".keys'],
    ['insert on missing.keys', 'grant insert on "missing".keys'],
    ['delete on missing.outcomes', 'grant delete on "missing".outcomes'],
    ['insert, update on missing.steps', 'grant insert, update on "missing".steps'],
    ['insert on missing.outbox', 'grant insert on "missing".outbox'],
    ['execute on function missing.read_many_9', 'grant execute on function "missing".read_many_9'],
  ])('names what is missing without %s, and its cure cures it', async (right, cure) => {
    await grant('missing')
    await owner.query(`revoke ${right} from ${role}, public`)
    const store = postgresStore({ pool: limited, schema: 'missing' })
    const found = await store.check()
    expect(found).toMatchObject({ kind: 'rights' })
    const [, text = ''] = /run (grant .*)$/.exec('message' in found ? found.message : '') ?? []
    expect(text).toBe(`${cure} to "${role}"`)
    await owner.query(text)
    expect(await store.check()).toEqual({ kind: 'fit' })
    await owner.query('drop schema missing cascade')
  })

  it('says that it cannot be written where every transaction is read-only', async () => {
    await postgresStore({ pool: owner, schema: 'read' }).migrate()
    const readOnly = poolOf(database.url, '-c default_transaction_read_only=on')
    const store = postgresStore({ pool: readOnly, schema: 'read' })
    expect(await store.check()).toMatchObject({ kind: 'read-only', message: /default_transaction_read_only/ })
    await expect(postgresStore({ pool: readOnly, schema: 'unread' }).migrate()).rejects.toMatchObject({
      code: 'store-read-only',
    })
    await readOnly.end()
  })

  it('sends one message', async () => {
    const pool = poolOf(database.url)
    let sent = 0
    pool.on('connect', client => {
      const query: (...args: unknown[]) => unknown = client.query.bind(client)
      Reflect.set(client, 'query', (...args: unknown[]) => {
        sent += 1
        return query(...args)
      })
    })
    await postgresStore({ pool, schema: 'life' }).check()
    expect(sent).toBe(1)
    await pool.end()
  })

  it('rejects when the database cannot be reached', async () => {
    const pool = poolOf('postgres://127.0.0.1:1/none')
    await expect(postgresStore({ pool }).check()).rejects.toMatchObject({ code: 'store-unavailable' })
    await pool.end()
  })
})

const answer = (body: string) => ({ status: 200, headers: [], body: Buffer.from(body), version: 1 })

async function everythingThatRequestsDo(store: PostgresStore<pg.PoolClient>): Promise<void> {
  const owned = async (asked: ClaimRequest) => {
    const result = await store.claim(asked)
    if (result.kind !== 'won') throw new Error(result.kind)
    return result.claim
  }
  const large = await owned(claimRequest())
  expect(await store.complete(large, answer('x'.repeat(10_000)), hourMs)).toBe('written')
  const small = await Promise.all([1, 2, 3].map(() => owned(claimRequest())))
  await Promise.all(small.map(claim => store.heartbeat(claim, hourMs)))
  await Promise.all(small.map(claim => store.complete(claim, answer('small'), hourMs)))
  await Promise.all(small.map(({ id }) => store.read(id)))
  const doubtful = await owned(claimRequest())
  await store.fail(doubtful, { to: 'unknown', errorCode: 'E', dueInMs: 0 })
  expect(await store.complete(doubtful, answer('late'), hourMs)).toBe('written')
  expect(await store.complete({ ...doubtful, fence: 9 }, answer('stale'), hourMs)).toBe('claim-lost')
  const undone = await owned(claimRequest())
  expect(await store.release(undone.id, undone.claimId)).toBe('released')
  const work = { version: 1, input: '{}' }
  const phased = await owned({ ...claimRequest(), recovery: 'resume', work })
  const intent = { position: 0, name: 'charge', epoch: 0, key: randomUUID(), windowMs: hourMs }
  expect(await store.steps?.openIntent(phased, intent, hourMs)).toBe('written')
  expect(await store.steps?.recordResult(phased, { position: 0, value: '1' }, hourMs)).toBe('written')
  expect(await store.park(phased, 'a test')).toBe('written')
  expect(await store.enqueue({ ...claimRequest(), work: { ...work, deadlineInMs: hourMs } })).toEqual({
    kind: 'queued',
  })
  const atomic: AtomicRequest = { ...claimRequest(), retentionMs: hourMs }
  const end = await store.transactor?.transaction(async tx => {
    await store.transactor?.reserve(tx, atomic)
    await store.outbox?.append(tx, message)
    await store.transactor?.record(tx, atomic, answer('atomic'), 0)
    return 'commit'
  }, atomic)
  expect(end).toEqual({ kind: 'committed' })
}

const message = {
  topic: 'receipts',
  aggregate: undefined,
  dedupId: 'one',
  payload: Buffer.from('{}'),
  headers: {},
}
