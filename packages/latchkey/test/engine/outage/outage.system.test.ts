import { once } from 'node:events'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import pg from 'pg'
import { forkProgram } from '../../../../../test/programs/program.ts'
import { engine } from '../../../src/engine/internal.ts'
import { describeOwnPostgres } from '../../../../../test/servers/describe-postgres.ts'
import { createLatchkey, type Latchkey } from '../../../src/index.ts'
import { createWorkers } from '../../../src/workers/index.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/index.ts'
import { answered, eventually, executeRequest, gate, idOf, operationName, rowOf, told } from '../fixture.ts'

const limitMs = 120_000

describeOwnPostgres('a PostgreSQL that goes away while handlers run', own => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  let latchkey: Latchkey<unknown, unknown>

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: own.server.url, max: 8 })
    pool.on('error', () => {})
    store = postgresStore({ pool })
    await store.migrate()
  })
  beforeEach(() => {
    latchkey = createLatchkey({ store, scope: () => 'acme' }) as Latchkey<unknown, unknown>
  })
  afterAll(() => pool.end())

  it.each([
    ['keeps their leases until they are stored', 60_000],
    ['settles what was swept to unknown meanwhile', 2_000],
  ])(
    'leaves nothing for a person: the process that lived %s',
    async (_, leaseMs) => {
      const keys = Array.from({ length: 8 }, (__, n) => `outage ${leaseMs} ${n}`)
      const guarded = latchkey.guarded(operationName, { onFailure: 'hold', leaseMs })
      const { opened, open } = gate()
      let runs = 0
      const execute = (key: string) =>
        guarded[engine].execute(executeRequest(key), async () => {
          runs += 1
          await opened
          return answered(201, key)
        })
      const answers = Promise.all(keys.map(execute))
      await eventually(() => runs === keys.length, limitMs)
      await own.server.kill()
      open()
      expect((await answers).map(told)).toEqual(keys.map(() => 'executed 201 failed'))

      await own.server.restart()
      // Another process, whose sweeper finds the dead leases first where it can.
      const beside = createLatchkey({ store, scope: () => 'acme' })
      const workers = createWorkers(beside, { only: ['sweeper'], sweeper: { everyMs: 50 } })
      workers.start()
      await eventually(async () => {
        const rows = await Promise.all(keys.map(key => store.read(idOf(key)).catch(() => undefined)))
        return rows.every(row => row?.state === 'completed')
      }, limitMs)
      await workers.drain()
      await beside.close()
      expect((await Promise.all(keys.map(execute))).map(told)).toEqual(keys.map(() => 'replayed 201'))
      expect(runs).toBe(keys.length)
      expect(await latchkey.close()).toEqual({ drained: true, unstored: 0 })
    },
    4 * limitMs,
  )

  it(
    'leaves unknown what a process knew that was killed, as before',
    async () => {
      const child = await forkProgram(new URL('./outage-process.ts', import.meta.url), [own.server.url])
      expect(await once(child, 'message')).toContain('running')
      await own.server.kill()
      const ended = once(child, 'message')
      child.send('end')
      expect(await ended).toContain('executed 201 failed')
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
      await own.server.restart()
      await eventually(async () => {
        await store.sweep({ limit: 10 }).catch(() => [])
        return (await store.read(idOf('killed')).catch(() => undefined))?.state === 'unknown'
      }, limitMs)
      expect(await rowOf(store, 'killed')).toMatchObject({ crashes: 1 })
      await latchkey.close()
    },
    4 * limitMs,
  )
})
