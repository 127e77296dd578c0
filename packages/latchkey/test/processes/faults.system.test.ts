import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOwnPostgres, describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { createLatchkey } from 'latchkey'
import { type App, eventually, post, startApp } from './fleet.ts'
import { openPlace, type Place } from './database.ts'

describeOwnPostgres('a PostgreSQL that goes away', own => {
  it('answers 503 without running the handler while it is down, and serves again without a restart', async () => {
    const place = await openPlace(own.server.url)
    await place.migrate()
    const app = await startApp({ place: own.server.url, leaseMs: 3_000, onInProgress: 'refuse' })
    expect(await post(app, '/hold', { key: 'before', label: 'before' })).toMatchObject({ status: 201 })

    await own.server.kill()
    for (const path of ['/hold', '/atomic']) {
      const refused = await post(app, path, { key: 'during', label: 'during' })
      expect(refused).toMatchObject({ status: 503, code: 'store-unavailable' })
      expect(refused.retryAfter).toBeGreaterThan(0)
    }

    await own.server.restart()
    const afterwards = () => post(app, '/hold', { key: 'during', label: 'during' })
    expect(await eventually(afterwards, ({ status }) => status !== 503)).toMatchObject({ status: 201, replayed: false })
    expect(await place.executions('during')).toBe(1)
    const acknowledged = await post(app, '/hold', { key: 'before', label: 'before' })
    expect(acknowledged).toMatchObject({ status: 201, replayed: true })
    await app.stop()
    await place.close()
  })
})

describePostgres('processes that disagree about the time', database => {
  let place: Place
  let apps: App[] = []
  const lease = { leaseMs: 6_000, onInProgress: 'refuse' } as const

  beforeAll(async () => {
    place = await openPlace(database.url)
    await place.migrate()
    const ahead = fileURLToPath(new URL('./clock-an-hour-ahead.mjs', import.meta.url))
    apps = [
      await startApp({ place: database.url, ...lease }),
      await startApp({ place: database.url, ...lease }, { execArgv: ['--import', ahead] }),
    ]
  })
  afterAll(async () => {
    await Promise.all(apps.map(app => app.stop()))
    await place.close()
  })

  it.each([
    [0, 1],
    [1, 0],
  ])('keep to the lease of the database clock: owner %i, other %i', async (owner, other) => {
    const label = `clock-${owner}`
    const first = post(apps[owner] as App, '/rerun', { key: label, label, slow: 2_000 })
    await eventually(
      () => place.executions(label),
      count => count === 1,
    )
    const twin = await post(apps[other] as App, '/rerun', { key: label, label, slow: 2_000 })
    expect(twin).toMatchObject({ status: 409, code: 'in-progress' })
    expect(twin.retryAfter).toBeLessThanOrEqual(6)
    expect((await first).status).toBe(201)
    expect(await place.executions(label)).toBe(1)
    const record = await place.store.read(
      createLatchkey({ store: place.store, scope: () => 'acme' }).identify({
        scope: 'acme',
        operation: 'rerun',
        key: label,
      }),
    )
    const day = 24 * 3_600_000
    expect(record?.expiresAtMs).toBeGreaterThan(Date.now() + day - 60_000)
    expect(record?.expiresAtMs).toBeLessThan(Date.now() + day + 20 * 60_000)
  })

  it.each(['hold', 'atomic'])('have stored the answer of %s before its first byte arrives', async operation => {
    const key = `first-byte-${operation}`
    const id = createLatchkey({ store: place.store, scope: () => 'acme' }).identify({ scope: 'acme', operation, key })
    await firstByte(apps[0] as App, `/${operation}`, key)
    expect(await place.store.read(id)).toMatchObject({ state: 'completed', outcome: { status: 201 } })
  })
})

/** Sends a request over a socket of its own and waits for one byte of the answer, no more. */
function firstByte(app: App, path: string, key: string): Promise<void> {
  const { hostname, port } = new URL(app.url)
  const body = JSON.stringify({ label: key })
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}`,
    'content-type: application/json',
    `idempotency-key: ${key}`,
  ]
  const request = [...head, 'x-account: acme', `content-length: ${body.length}`, '', body].join('\r\n')
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(request))
    socket.once('error', reject)
    socket.once('data', () => {
      socket.destroy()
      resolve()
    })
  })
}
