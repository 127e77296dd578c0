/** A raw key is in no report, metric, log line, error, answer or table, whatever goes wrong. */
import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { createLatchkey, silentTelemetry } from 'latchkey'
import { describeOwnPostgres } from '../../../../test/servers/describe-postgres.ts'
import { ask, type Asked, expire, hasRun, idOf, killAt, type Reply, startShop, twoShops } from '../checklists/shops.ts'
import { eventually } from '../processes/fleet.ts'
import { searchTables } from './database-text.ts'

/** Nothing else contains it. */
const marker = `key${randomUUID().replaceAll('-', '')}`
const payments = { operation: 'payments.create' } as const

describeOwnPostgres('a key with a marker in it', own => {
  const scene = twoShops(() => own.server.url)

  it('leaves the process in no way, through every failure that a client meets', async () => {
    const workers = { only: ['sweeper', 'reaper'], sweeper: { everyMs: 200 }, reaper: { everyMs: 200 } } as const
    const shop = await startShop({ ...scene.argument, workers })
    const replies: Reply[] = []
    const send = async (key: string, asked: Asked = {}) => {
      const reply = await ask(shop, { path: '/payments', key: `${marker}${key}`, body: { label: key }, ...asked })
      replies.push(reply)
      return reply.code ?? String(reply.status)
    }
    const headers = { 'x-fails': 'by throwing' }
    const slow = { body: { label: 'slow', slow: 1_500 } }

    expect([await send('a'), await send('a')]).toEqual(['201', '201'])
    expect(await send('a', { body: { label: 'other' } })).toBe('key-reused')
    expect(await send('a', { user: 'intern' })).toBe('replay-not-authorized')
    expect(await send('a', { account: '' })).toBe('scope-unresolved')
    expect(await send('b', { body: { label: 'x'.repeat(20_000) } })).toBe('body-too-large')
    for (const key of [`${marker}, ${marker}`, `"${marker}`, `${marker}"`, marker.repeat(9), `@${marker}`])
      expect(await send('', { key })).toBe('invalid-key')
    expect([await send('c', { headers }), await send('c')]).toEqual(['outcome-unknown', 'outcome-unknown'])
    expect(await send('d', { path: '/orders', headers })).toBe('500')
    expect(await send('e', { path: '/wallets', headers })).toBe('500')
    expect([await send('f', { path: '/archives' }), await send('g', { path: '/transfers' })]).toEqual(['202', '201'])
    const first = send('h', slow)
    await hasRun(scene, 'slow')
    expect([await send('h', slow), await first]).toEqual(['in-progress', '201'])
    await killAt(scene, 'dead', { key: `${marker}i`, path: '/payments', body: { label: 'dead', slow: 9_000 } })
    await eventually(
      async () => shop.counted('zombie_key').map(({ identity }) => identity),
      swept => swept.includes(idOf({ ...payments, key: `${marker}i` })),
    )
    await scene.pool.query('update latchkey.keys set state = 7 where id = $1', [
      idOf({ ...payments, key: `${marker}a` }),
    ])
    expect(await send('a')).toBe('row-unreadable')
    await send('j')
    await expire(scene, { ...payments, key: `${marker}j` })
    expect(await send('j')).toBe('201')
    expect(await searchTables(scene.pool, [marker])).toEqual([])
    await own.server.kill()
    try {
      for (const path of ['/payments', '/orders', '/transfers', '/archives'])
        expect(await send('k', { path })).toBe('store-unavailable')
    } finally {
      await own.server.restart()
    }

    await shop.flush()
    // The search sees what is there: reports of a misuse, of a swept row, of a row that cannot be read and of the store.
    const lines = ['used a key again', 'lease expired', 'cannot be read', 'store failed', 'socket hang up']
    const written = await eventually(
      async () => shop.output(),
      text => lines.every(line => text.includes(line)),
    )
    const answered = replies.map(({ text, headers: sent }) => text + JSON.stringify([...sent]))
    const all = [written, ...shop.told.map(one => JSON.stringify(one)), ...answered]
    expect(all.filter(text => text.includes(marker))).toEqual([])
    await shop.stop()
  })

  it('is in no error that a caller of run or an operator gets', async () => {
    const { store } = scene.place
    const latchkey = createLatchkey({ store, scope: () => 'acme', telemetry: silentTelemetry, maintenance: false })
    const hold = latchkey.guarded('functions.hold', { onFailure: 'hold', keyFormat: { maxLength: 60 } })
    const dated = latchkey.guarded('functions.dated', { onFailure: 'rerun', keyAgeMsMax: 3_600_000 })
    const caught: unknown[] = []
    const failing = async (run: () => Promise<unknown>) => {
      await run().then(
        value => expect.unreachable(`it succeeded: ${String(value)}`),
        (error: unknown) => caught.push(error),
      )
    }
    const request = (key: string, input: unknown = 1) => ({ scope: 'acme', key, input })
    // The database is back after the test before this one.
    await eventually(
      () => hold.run(request(`${marker}1`), () => 1).catch(() => undefined),
      value => value === 1,
    )
    await failing(() => hold.run(request(`${marker}1`, 2), () => 1))
    await failing(() => hold.run(request(`${marker}2`), () => Promise.reject(new Error('reset'))))
    await failing(() => hold.run(request(`${marker}2`), () => 1))
    await failing(() => hold.run(request(marker.repeat(2)), () => 1))
    await failing(() => hold.run(request(`${marker}\ud800`), () => 1))
    await failing(() => dated.run(request(marker), () => 1))
    await failing(() => latchkey.inspect({ id: marker }))
    await failing(() => latchkey.list({ after: marker }))
    const row = { scope: 'acme', operation: 'functions.hold', key: `${marker}2` }
    await failing(() => latchkey.settle(row, { kind: 'happened', status: 99, json: 1 }, { by: 'ada', reason: 'test' }))
    const shown = [...caught, await latchkey.inspect(row), await latchkey.list()].map(one => inspect(one, { depth: 9 }))
    expect(shown).toHaveLength(11)
    expect(shown.filter(text => text.includes(marker))).toEqual([])
    await latchkey.close()
  })
})
