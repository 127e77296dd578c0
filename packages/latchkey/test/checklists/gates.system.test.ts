/** The eight gates that a protected API has to pass, in their order, on PostgreSQL, over HTTP. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { type ProblemCode, problemKinds } from '../../src/wire/problem.ts'
import { eventually } from '../processes/fleet.ts'
import { ask, type Asked, expire, hasRun, idOf, killAt, type Reply, type Stage, startShop, twoShops } from './shops.ts'

const day = 24 * 3_600_000
const payments = { operation: 'payments.create' } as const

describePostgres('the eight gates', database => {
  const scene = twoShops(() => database.url)

  it('1. the same request sent twice gets the same answer, and happens once', async () => {
    for (const path of ['/orders', '/payments', '/wallets', '/transfers']) {
      const asked = { key: `same${path}`, path }
      const [first, again] = [await ask(scene.shops[0], asked), await ask(scene.shops[1], asked)]
      expect([first.status, first.replayed, again.status, again.replayed]).toEqual([201, false, 201, true])
      expect([again.text, again.headers.get('content-type')]).toEqual([first.text, first.headers.get('content-type')])
    }
    const counted = ['same/orders', 'same/payments', 'same/wallets', 'same/transfers/debit', 'same/transfers/credit']
    expect(await Promise.all(counted.map(label => scene.place.executions(label)))).toEqual([1, 1, 1, 1, 1])
  })

  it('2. the same key with another body, path or query is refused, also while the first request runs', async () => {
    const change = { key: 'other', method: 'PATCH', path: '/orders/1', body: { colour: 'red' } }
    expect((await ask(scene.shops[0], change)).status).toBe(200)
    const others: [Partial<Asked>, string][] = [
      [{ body: { colour: 'blue' } }, 'body'],
      [{ path: '/orders/2' }, 'path'],
      [{ path: '/orders/1?gift=yes' }, 'query'],
    ]
    for (const [other, part] of others) {
      const refused = await ask(scene.shops[0], { ...change, ...other })
      expect(refused).toMatchObject({ status: 422, code: 'key-reused' })
      expect(JSON.parse(refused.text).differing_parts).toEqual([part])
    }
    const slow = { key: 'other-slow', path: '/payments', body: { label: 'other-slow', slow: 1_500 } }
    const first = ask(scene.shops[0], slow)
    await hasRun(scene, 'other-slow')
    expect((await ask(scene.shops[1], { ...slow, body: { label: 'quick' } })).status).toBe(422)
    expect((await first).status).toBe(201)
    expect(await scene.place.executions('quick')).toBe(0)
  })

  it('3. twenty concurrent requests at two processes run once', async () => {
    for (const path of ['/orders', '/payments']) {
      const asked = { key: `crowd${path}`, path, body: { label: `crowd${path}`, slow: 300 } }
      const shops = Array.from({ length: 10 }, () => scene.shops).flat()
      const answers = await Promise.all(shops.map(shop => ask(shop, asked)))
      expect(answers.filter(({ status, replayed }) => status === 201 && !replayed)).toHaveLength(1)
      expect(answers.filter(({ status, replayed }) => status === 409 || replayed)).toHaveLength(19)
      expect(await scene.place.executions(`crowd${path}`)).toBe(1)
    }
  })

  it('4. killed in the middle of a phase, it resumes after the last one that committed', async () => {
    const asked = { key: 'phases', path: '/transfers', body: { label: 'phases', slow: 1_500 } }
    await killAt(scene, 'phases/credit', asked)
    expect(await scene.place.businessRows('phases/debit')).toBe(1)
    expect(await scene.place.businessRows('phases/credit')).toBe(0)
    const resumed = await eventually(
      () => ask(scene.shops[0], asked),
      ({ status }) => status !== 409,
    )
    expect(resumed).toMatchObject({ status: 201, replayed: false, text: '{"label":"phases"}' })
    const runs = ['phases/debit', 'phases/credit'].map(label => scene.place.executions(label))
    expect(await Promise.all(runs)).toEqual([1, 2])
    const rows = ['phases/debit', 'phases/credit'].map(label => scene.place.businessRows(label))
    expect(await Promise.all(rows)).toEqual([1, 1])
  })

  it('5. a unique index refuses a second row of one key, whoever writes it', async () => {
    await ask(scene.shops[0], { key: 'unique' })
    const copy = scene.pool.query(
      `create temporary table copied as select * from latchkey.keys where id = '${idOf({ operation: 'orders.create', key: 'unique' })}';
       insert into latchkey.keys select * from copied`,
    )
    await expect(copy).rejects.toMatchObject({ code: '23505', constraint: 'keys_pkey' })
  })

  it('6. the reaper deletes what is past its retention, and nothing else', async () => {
    const keys = ['reaped', 'young', 'in-doubt'] as const
    for (const key of keys.slice(0, 2)) await ask(scene.shops[0], { key, path: '/payments' })
    await ask(scene.shops[0], { key: 'in-doubt', path: '/payments', headers: { 'x-fails': 'once' } })
    const slow = { key: 'running', path: '/payments', body: { label: 'running', slow: 2_000 } }
    const running = ask(scene.shops[0], slow)
    await hasRun(scene, 'running')
    for (const key of ['reaped', 'in-doubt', 'running']) await expire(scene, { ...payments, key })

    const reaping = await startShop({ ...scene.argument, workers: { only: ['reaper'], reaper: { everyMs: 100 } } })
    await eventually(
      () => scene.rowOf({ ...payments, key: 'reaped' }),
      row => row === undefined,
    )
    await running
    const states = [...keys, 'running'].map(async key => (await scene.rowOf({ ...payments, key }))?.state)
    expect(await Promise.all(states)).toEqual([undefined, 'completed', 'unknown', 'completed'])
    // What ended late is stored for its whole retention from then on.
    expect(await ask(scene.shops[1], slow)).toMatchObject({ status: 201, replayed: true })
    expect(await ask(scene.shops[1], { key: 'young', path: '/payments' })).toMatchObject({ replayed: true })
    await reaping.stop()
  })

  it('7. GET, PUT and DELETE need no key, and run every time', async () => {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      for (const key of [undefined, undefined, 'a-key', 'a-key']) {
        const answer = await ask(scene.shops[0], { method, path: '/orders/1', key })
        expect(answer).toMatchObject({ status: 200, replayed: false, text: JSON.stringify({ method }) })
      }
    }
    expect((await ask(scene.shops[0], { method: 'PATCH', path: '/orders/1' })).status).toBe(400)
  })

  it('8. the codes and the retention are those that the guides document', async () => {
    const answers = await everyAnswer(scene)
    const documented = { clients: clientCodes(), errors: errorCodes() }
    for (const { status, code } of answers) {
      expect(documented.clients).toContain(`${status} ${code}`)
      expect(documented.errors).toContain(`${status} ${code}`)
    }
    expect(new Set(answers.map(({ code }) => code)).size).toBe(answers.length - 1)

    const stored = await ask(scene.shops[0], { key: 'kept', path: '/wallets' })
    const leftMs = Date.parse(stored.headers.get('idempotency-key-expires-at') ?? '') - Date.now()
    const hours = Number(promised(/We store the answer for <(\d+) hours>/))
    // The row is granted with the longest time that its handler may take.
    expect(leftMs).toBeGreaterThan(hours * 3_600_000 - 60_000)
    expect(leftMs).toBeLessThan(hours * 3_600_000 + 120_000)
    const { rows } = await scene.pool.query('select tombstone_ms::float8 as ms from latchkey.keys where id = $1', [
      idOf({ ...walletOf, key: 'kept' }),
    ])
    expect(rows).toEqual([{ ms: Number(promised(/another (\d+) days it gets 410/)) * day }])

    const lengthMax = Number(promised(/A key is 1 to <(\d+)> characters/))
    expect((await ask(scene.shops[0], { key: 'k'.repeat(lengthMax) })).status).toBe(201)
    expect((await ask(scene.shops[0], { key: 'k'.repeat(lengthMax + 1) })).code).toBe('invalid-key')
  })
})

const walletOf = { operation: 'wallets.create', scope: ['acme', 'ada'] }

/** One answer of every code that a client can cause here; an unknown outcome has two. */
async function everyAnswer(scene: Stage): Promise<Reply[]> {
  const [shop] = scene.shops
  const payment = { path: '/payments' }
  await ask(shop, { ...payment, key: 'documented' })
  await ask(shop, { path: '/wallets', key: 'documented-old' })
  await expire(scene, { ...walletOf, key: 'documented-old' })
  const slow = { ...payment, key: 'documented-slow', body: { label: 'documented-slow', slow: 1_500 } }
  const first = ask(shop, slow)
  await hasRun(scene, 'documented-slow')
  const answers = [
    await ask(shop, slow),
    await ask(shop, payment),
    await ask(shop, { ...payment, key: 'a, b' }),
    await ask(shop, { ...payment, key: 'documented', user: 'intern' }),
    await ask(shop, { ...payment, key: 'documented', body: { label: 'another' } }),
    await ask(shop, { ...payment, key: 'documented-large', body: { label: 'x'.repeat(20_000) } }),
    await ask(shop, { ...payment, key: 'documented-doubt', headers: { 'x-fails': 'once' } }),
    await ask(shop, { ...payment, key: 'documented-doubt' }),
    await ask(shop, { path: '/wallets', key: 'documented-old' }),
  ]
  await first
  return answers
}

function guide(name: string): string {
  return readFileSync(new URL(`../../../../docs/guides/${name}.md`, import.meta.url), 'utf8')
}

function promised(pattern: RegExp): string {
  const found = pattern.exec(guide('tell-your-clients'))?.[1]
  if (found === undefined) throw new Error(`tell-your-clients.md no longer says ${pattern}`)
  return found
}

/** `| 400 `missing-key`, `invalid-key` | …` of the page for clients, as `400 missing-key`. Each is an answer that there is. */
function clientCodes(): string[] {
  const rows = [...guide('tell-your-clients').matchAll(/^\| (\d{3}) ([^|]*)\|/gm)]
  const codes = rows.flatMap(([, status = '', cell = '']) =>
    [...cell.matchAll(/`([a-z-]+)`/g)].map(([, code = '']) => `${status} ${code}`),
  )
  for (const each of codes) {
    const [status, code] = each.split(' ')
    const kind = problemKinds[code as ProblemCode]
    expect([kind?.status, ...(code === 'outcome-unknown' ? [504] : [])], each).toContain(Number(status))
  }
  return codes
}

/** `| `in-progress` | 409 | …` of the page about errors. */
function errorCodes(): string[] {
  const rows = [...guide('errors').matchAll(/^\| `([a-z-]+)` \| (\d{3})(?:, or (\d{3}))?/gm)]
  return rows.flatMap(([, code = '', ...statuses]) =>
    statuses.filter(status => status !== undefined).map(status => `${status} ${code}`),
  )
}
