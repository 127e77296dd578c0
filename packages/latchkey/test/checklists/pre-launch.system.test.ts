/** The eighteen lines of the pre-launch checklist, in its order, on PostgreSQL, over HTTP, in processes that are really killed. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { expect, it } from 'vitest'
import { postgresStore } from 'latchkey/stores/postgres'
import { describeOwnPostgres } from '../../../../test/servers/describe-postgres.ts'
import { reapStatement } from '../../src/stores/postgres/keys/reap.ts'
import { dialect } from '../../src/stores/postgres/sql/names.ts'
import { claimRequest } from '../claim-request.ts'
import { eventually } from '../processes/fleet.ts'
import { ask, type Asked, expire, hasRun, idOf, killAt, leaseMs, type Shop, startShop, twoShops } from './shops.ts'

const payments = { operation: 'payments.create', path: '/payments' } as const

describeOwnPostgres('the pre-launch checklist', own => {
  const scene = twoShops(() => own.server.url)
  const handled = async (shop: Shop) => Number((await ask(shop, { method: 'GET', path: '/handled' })).text)

  it('1. two identical POSTs at once: one runs', async () => {
    const asked = { key: 'twice', body: { label: 'twice', slow: 300 } }
    const answers = await Promise.all([ask(scene.shops[0], asked), ask(scene.shops[0], asked)])
    expect(await scene.place.executions('twice')).toBe(1)
    expect(await scene.place.businessRows('twice')).toBe(1)
    expect(answers.filter(({ status, replayed }) => status === 201 && !replayed)).toHaveLength(1)
    expect(answers.filter(({ status, replayed }) => status === 409 || replayed)).toHaveLength(1)
    expect(await ask(scene.shops[0], asked)).toMatchObject({ status: 201, replayed: true })
  })

  it('2. the same key with another body: refused, and the first answer stays', async () => {
    const first = await ask(scene.shops[0], { key: 'body', body: { label: 'body' } })
    const other = await ask(scene.shops[0], { key: 'body', body: { label: 'another body' } })
    expect(other).toMatchObject({ status: 422, code: 'key-reused' })
    expect(JSON.parse(other.text).differing_parts).toEqual(['body'])
    expect(await scene.place.executions('another body')).toBe(0)
    const again = await ask(scene.shops[0], { key: 'body', body: { label: 'body' } })
    expect(again).toMatchObject({ status: 201, replayed: true, text: first.text })
  })

  it('3. two tenants with one key: two results', async () => {
    const [acme, globex] = [
      await ask(scene.shops[0], { key: 'tenants' }),
      await ask(scene.shops[0], { key: 'tenants', account: 'globex' }),
    ]
    for (const answer of [acme, globex]) expect(answer).toMatchObject({ status: 201, replayed: false })
    expect(await scene.place.businessRows('tenants')).toBe(2)
    // What is sent to a payment provider is told apart as well.
    expect(JSON.parse(globex.text).charge).not.toBe(JSON.parse(acme.text).charge)
  })

  it('4. another principal of the tenant: authorised first, or apart by scope', async () => {
    const payment = { key: 'principal', path: '/payments' }
    expect(await ask(scene.shops[0], payment)).toMatchObject({ status: 201 })
    expect(await ask(scene.shops[0], { ...payment, user: 'grace' })).toMatchObject({ status: 201, replayed: true })
    const refused = await ask(scene.shops[0], { ...payment, user: 'intern' })
    expect(refused).toMatchObject({ status: 403, code: 'replay-not-authorized' })
    expect(refused.text).not.toContain('charge')
    expect(await scene.place.executions('principal')).toBe(1)

    const wallet = { key: 'principals', path: '/wallets' }
    for (const user of ['ada', 'grace'])
      expect(await ask(scene.shops[0], { ...wallet, user })).toMatchObject({ status: 201, replayed: false })
    expect(await scene.place.executions('principals')).toBe(2)
  })

  it('5. EXPLAIN names the unique index that decides a claim', async () => {
    const plans: string[] = []
    const pool = new pg.Pool({ connectionString: own.server.url, max: 1 })
    pool.on('connect', client => client.on('notice', ({ message = '' }) => plans.push(message)))
    await pool.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0;
      set auto_explain.log_nested_statements = on; set client_min_messages = log`)
    const store = postgresStore({ pool })
    const asked = claimRequest()
    expect([(await store.claim(asked)).kind, (await store.claim(asked)).kind]).toEqual(['won', 'seen'])
    await pool.end()
    const inserts = plans.filter(plan => plan.includes('Insert on keys'))
    expect(inserts.length).toBeGreaterThan(0)
    for (const plan of inserts) expect(plan).toContain('Conflict Arbiter Indexes: keys_pkey')
    const { rows } = await scene.pool.query(
      `select indisunique, indisvalid from pg_index where indexrelid = 'latchkey.keys_pkey'::regclass`,
    )
    expect(rows).toEqual([{ indisunique: true, indisvalid: true }])
  })

  it('6. two identical POSTs at two processes: one runs, and both tell the same', async () => {
    const asked = { key: 'nodes', body: { label: 'nodes', slow: 300 } }
    const answers = await Promise.all(scene.shops.map(shop => ask(shop, asked)))
    expect(answers.filter(({ status, replayed }) => status === 201 && !replayed)).toHaveLength(1)
    expect(await scene.place.executions('nodes')).toBe(1)
    const [here, there] = await Promise.all(scene.shops.map(shop => ask(shop, asked)))
    expect(here).toMatchObject({ status: 201, replayed: true })
    expect(there?.text).toBe(here?.text)
  })

  it('7. Retry-After: a client that waits as long as it is told gets the answer', async () => {
    const asked = { key: 'patient', path: '/payments', body: { label: 'patient', slow: 1_500 } }
    const first = ask(scene.shops[0], asked)
    await hasRun(scene, 'patient')
    const told: string[] = []
    for (let tries = 0; tries < 10; tries += 1) {
      const answer = await ask(scene.shops[1], asked)
      if (answer.status !== 409) break
      told.push(answer.headers.get('retry-after') ?? 'nothing')
      await delay(answer.retryAfter * 1_000)
    }
    expect(told.length).toBeGreaterThan(0)
    // Whole seconds, and never so many that the client would be better off asking again.
    for (const seconds of told) expect(seconds).toMatch(/^[1-9]$/)
    const answer = await first
    expect(await ask(scene.shops[1], asked)).toMatchObject({ status: 201, replayed: true, text: answer.text })
    expect(await scene.place.executions('patient')).toBe(1)
  })

  it('8. a request without a key: refused, and nothing runs', async () => {
    const before = await handled(scene.shops[0])
    for (const key of [undefined, '', '""', 'a, b'])
      expect(await ask(scene.shops[0], { key, body: { label: 'no key' } })).toMatchObject({
        status: 400,
        code: key === undefined ? 'missing-key' : 'invalid-key',
      })
    expect(await handled(scene.shops[0])).toBe(before)
    expect(await scene.place.executions('no key')).toBe(0)
  })

  it('9. killed after the effect: the retry does not repeat it', async () => {
    const asked = { key: 'killed', path: '/payments', body: { label: 'killed', slow: 5_000 } }
    await killAt(scene, 'killed', asked)
    expect(await ask(scene.shops[0], asked)).toMatchObject({ status: 409, code: 'in-progress' })
    const held = await eventually(
      () => ask(scene.shops[0], asked),
      ({ code }) => code !== 'in-progress',
    )
    expect(held).toMatchObject({ status: 409, code: 'outcome-unknown' })
    expect(held.retryAfter).toBeGreaterThan(0)
    expect(await scene.place.executions('killed')).toBe(1)
  })

  it('10. the store is down: 503, nothing runs, it is counted, and service resumes without a restart', async () => {
    const [shop] = scene.shops
    expect(await ask(shop, { key: 'before' })).toMatchObject({ status: 201 })
    const before = await handled(shop)
    await own.server.kill()
    try {
      for (const path of ['/orders', '/payments', '/transfers']) {
        const refused = await ask(shop, { key: 'during', path })
        expect(refused).toMatchObject({ status: 503, code: 'store-unavailable', replayed: false })
        expect(refused.retryAfter).toBeGreaterThan(0)
      }
      expect(await handled(shop)).toBe(before)
      await shop.flush()
      expect(shop.counted('store.error').length).toBeGreaterThan(0)
    } finally {
      await own.server.restart()
    }
    for (const each of scene.shops) {
      const afterwards = () => ask(each, { key: 'during' })
      expect(await eventually(afterwards, ({ status }) => status !== 503)).toMatchObject({ status: 201 })
    }
    expect(await scene.place.executions('during')).toBe(1)
    expect(await ask(shop, { key: 'before' })).toMatchObject({ status: 201, replayed: true })
  })

  it('11. a first answer of 500 is not replayed: it runs again, or is held', async () => {
    const headers = { 'x-fails': 'once' }
    expect(await ask(scene.shops[0], { key: 'rolled-back', headers })).toMatchObject({ status: 500 })
    expect(await ask(scene.shops[0], { key: 'rolled-back' })).toMatchObject({ status: 201, replayed: false })
    expect(await scene.place.businessRows('rolled-back')).toBe(1)

    const payment = { key: 'in-doubt', path: '/payments' }
    expect(await ask(scene.shops[0], { ...payment, headers })).toMatchObject({ status: 504, code: 'outcome-unknown' })
    expect(await ask(scene.shops[0], payment)).toMatchObject({ status: 409, code: 'outcome-unknown' })
    expect(await scene.place.executions('in-doubt')).toBe(1)
  })

  it('12. every POST and PATCH of the application demands a key', async () => {
    const [shop] = scene.shops
    const { text } = await ask(shop, { method: 'GET', path: '/routes' })
    const routes: { method: string; path: string }[] = JSON.parse(text)
    const covered = routes.filter(({ method }) => ['POST', 'PATCH', 'ALL'].includes(method))
    expect(covered.length).toBeGreaterThan(5)
    const before = await handled(shop)
    for (const { method, path } of covered) {
      const answer = await ask(shop, { method, path: path.replace(':id', '1') })
      expect(answer, `${method} ${path}`).toMatchObject({ status: 400, code: 'missing-key' })
    }
    expect(await handled(shop)).toBe(before)
  })

  it('13. a retry after the retention: a new request with the same downstream key, or 410 where that is asked for', async () => {
    const first = await ask(scene.shops[0], { key: 'late', path: '/payments' })
    await expire(scene, { ...payments, key: 'late' })
    const again = await ask(scene.shops[0], { key: 'late', path: '/payments' })
    expect(again).toMatchObject({ status: 201, replayed: false })
    expect(JSON.parse(again.text).charge).toBe(JSON.parse(first.text).charge)
    await scene.shops[0].flush()
    expect(scene.shops[0].counted('reserve.after_expiry')).toHaveLength(1)

    await ask(scene.shops[0], { key: 'gone', path: '/wallets' })
    await expire(scene, { operation: 'wallets.create', key: 'gone', scope: ['acme', 'ada'] })
    const gone = await ask(scene.shops[0], { key: 'gone', path: '/wallets' })
    expect(gone).toMatchObject({ status: 410, code: 'key-expired' })
    expect(await scene.place.executions('gone')).toBe(1)
  })

  it('14. the reaper locks only the rows that it deletes, and waits for none', async () => {
    for (const key of ['old-1', 'old-2']) {
      await ask(scene.shops[0], { key, path: '/payments' })
      await expire(scene, { ...payments, key })
    }
    await ask(scene.shops[0], { key: 'young', path: '/payments' })
    const [reaper, holder] = [await scene.pool.connect(), await scene.pool.connect()]
    try {
      await reaper.query('begin')
      // Another request is at one of the rows; the reaper passes over it.
      await holder.query('begin')
      await holder.query('select from latchkey.keys where id = $1 for update', [idOf({ ...payments, key: 'old-1' })])
      const reaped = (await reaper.query(reapStatement(dialect('latchkey')), [100])).rows.map(row => String(row.id))
      expect(reaped).toContain(idOf({ ...payments, key: 'old-2' }))
      expect(reaped).not.toContain(idOf({ ...payments, key: 'old-1' }))
      const { rows: locks } = await reaper.query(
        `select distinct mode from pg_locks where pid = pg_backend_pid() and relation = 'latchkey.keys'::regclass order by mode`,
      )
      // Neither of them excludes a reader, a writer or the other.
      expect(locks.map(({ mode }) => mode)).toEqual(['RowExclusiveLock', 'RowShareLock'])

      // While it has not committed, requests go on, and so does a second reaper.
      const fresh = await ask(scene.shops[0], { key: 'new', path: '/payments' })
      expect(fresh).toMatchObject({ status: 201, replayed: false })
      expect(await ask(scene.shops[1], { key: 'young', path: '/payments' })).toMatchObject({ replayed: true })
      expect(await scene.place.store.reap({ limit: 100 })).toBe(0)
    } finally {
      // Both are ended, which rolls back.
      for (const client of [reaper, holder]) client.release(true)
    }
  })

  it('15. metrics: every event is counted once, by operation', async () => {
    const workers = {
      only: ['sweeper', 'reaper'],
      sweeper: { everyMs: 500 },
      reaper: { everyMs: 500 },
    } as const
    const shop = await startShop({ ...scene.argument, workers })
    const once = { key: 'counted', path: '/payments' }
    await ask(shop, once)
    await ask(shop, once)
    await ask(shop, { ...once, body: { label: 'another' } })
    const slow = { key: 'counted-slow', path: '/payments', body: { label: 'counted-slow', slow: 1_500 } }
    const first = ask(shop, slow)
    await hasRun(scene, 'counted-slow')
    expect((await ask(shop, slow)).status).toBe(409)
    await first
    const doubt = { key: 'counted-doubt', path: '/payments' }
    await ask(shop, { ...doubt, headers: { 'x-fails': 'once' } })
    await ask(shop, doubt)
    await killAt(scene, 'counted-dead', {
      key: 'counted-dead',
      path: '/payments',
      body: { label: 'counted-dead', slow: 9_000 },
    })
    await expire(scene, { ...payments, key: 'counted' })
    const dead = idOf({ ...payments, key: 'counted-dead' })
    await eventually(
      async () => [shop.counted('zombie_key'), shop.counted('ttl_pruned')],
      ([zombies = [], pruned = []]) => zombies.some(({ identity }) => identity === dead) && pruned.length > 0,
    )
    await shop.flush()
    const ofPayments = (metric: string) =>
      shop.counted(metric).filter(({ operation }) => operation === payments.operation).length
    expect({
      created: ofPayments('reserve.created'),
      replay: ofPayments('reserve.replay'),
      misuse: ofPayments('reserve.key_misuse'),
      inProgress: ofPayments('reserve.in_progress'),
      unknown: ofPayments('reserve.unknown'),
    }).toEqual({ created: 3, replay: 1, misuse: 1, inProgress: 1, unknown: 1 })
    expect(shop.told.filter(({ what }) => what === 'execution.duration')).toHaveLength(3)
    await shop.stop()
  })

  it('16. duplicates and misused keys are told by tenant', async () => {
    const [shop] = scene.shops
    await shop.flush()
    const before = shop.told.length
    const send = (account: string, key: string, label = key) => ask(shop, { key, account, body: { label } })
    for (const key of ['m1', 'm2', 'm3']) {
      for (let sent = 0; sent < 3; sent += 1) await send('careless', key)
      await send('careless', key, 'another request')
    }
    for (const key of ['m1', 'm1', 'm2', 'm3']) await send('careful', key)
    await shop.flush()
    const told = shop.told.slice(before)
    const byTenant = (kind: string) =>
      ['careless', 'careful'].map(scope => told.filter(one => one.kind === kind && one.scope === scope).length)
    const counted = (metric: string) =>
      ['careless', 'careful'].map(scope => told.filter(one => one.what === metric && one.scope === scope).length)
    expect(byTenant('replayed')).toEqual([6, 1])
    expect(counted('reserve.replay')).toEqual([6, 1])
    expect(counted('reserve.key_misuse')).toEqual([3, 0])
    expect(byTenant('reported')).toEqual([3, 0])
  })

  it('17. the sweeper resolves a dead lease within the lease and one sweep', async () => {
    const everyMs = 1_000
    const sweeping = await startShop({ ...scene.argument, workers: { only: ['sweeper'], sweeper: { everyMs } } })
    const asked: Asked = { key: 'swept', path: '/payments', body: { label: 'swept', slow: 20_000 } }
    await killAt(scene, 'swept', asked)
    const diedAt = performance.now()
    await eventually(
      () => scene.rowOf({ ...payments, key: 'swept' }),
      row => row?.state === 'unknown',
    )
    // What is left is for a busy machine. The default sweep, a minute, would be far over it.
    expect(performance.now() - diedAt).toBeLessThan(leaseMs + everyMs + 6_000)
    await sweeping.flush()
    const swept = sweeping.counted('zombie_key').map(({ identity }) => identity)
    expect(swept).toContain(idOf({ ...payments, key: 'swept' }))
    await sweeping.stop()
  })

  it('18. what one tenant was answered is never told to another', async () => {
    const [shop] = scene.shops
    const paid = await ask(shop, { key: 'private', path: '/payments' })
    const others = await ask(shop, { key: 'private', path: '/payments', account: 'globex' })
    expect(others).toMatchObject({ status: 201, replayed: false })
    expect(JSON.parse(others.text).account).toBe('globex')
    expect(others.text).not.toContain(JSON.parse(paid.text).charge)

    const accepted = await ask(shop, { key: 'private', path: '/archives' })
    expect(accepted.status).toBe(202)
    const status = { method: 'GET', path: accepted.headers.get('location') ?? '' }
    expect(await ask(shop, status)).toMatchObject({ status: 200 })
    const foreign = await ask(shop, { ...status, account: 'globex' })
    const absent = await ask(shop, { method: 'GET', path: `/operations/${crypto.randomUUID()}` })
    expect(foreign).toMatchObject({ status: 404, code: 'no-such-operation', text: absent.text })
  })
})
