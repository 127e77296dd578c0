import { afterEach, expect, it } from 'vitest'
import pg from 'pg'
import { engine } from '../../src/engine/internal.ts'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import {
  answered,
  eventually,
  executeRequest,
  gate,
  latchkeyOn,
  operationName,
  recordingTelemetry,
  runRequest,
  told,
} from '../engine/fixture.ts'
import { everything, nothing, ordering, postgresShop, type Shop } from './fixture.ts'

describePostgres('atomic handlers that query the pool instead of their tx', database => {
  let shop: Shop & { pool: pg.Pool }
  const telemetry = recordingTelemetry()
  const open = async (max: number) => {
    shop = await postgresShop(database.url, { max })
    const latchkey = latchkeyOn(shop.store, { telemetry })
    return { latchkey, atomic: latchkey.atomic(operationName) }
  }
  afterEach(() => shop.close())

  const namesTheMistake = /of payments\.create left .* queried the pool while its transaction was open: use tx/

  it('end, ten of them on a pool of ten, and meanwhile everything else goes on', async () => {
    const { latchkey, atomic } = await open(10)
    const guarded = latchkey.guarded('guarded.create', { onFailure: 'hold' })
    await guarded.run(runRequest('replayed'), () => 'first')
    await atomic.run(runRequest('replayed'), () => 'first')
    let open10 = 0
    const arrived = gate()
    const never = ordering(shop, 'never', () => answered(201))
    const door = gate()
    const handlers = Array.from({ length: 10 }, (_, at) =>
      atomic[engine].execute(executeRequest(`ten-${at}`), async ({ tx }) => {
        await shop.order(tx, `ten-${at}`)
        open10 += 1
        if (open10 === 9) arrived.open()
        await door.opened
        await shop.pool.query('insert into orders values ($1)', [`outside-${at}`])
        return answered(201)
      }),
    )
    await arrived.opened
    // Nine hold a connection, the tenth handler waits for one of them to end, and one connection is everybody's.
    for (let round = 0; round < 20; round += 1) {
      expect(await guarded.run(runRequest(`beside-${round}`), () => round).catch(String)).toBe(round)
      expect(await guarded.run(runRequest('replayed'), () => 'again').catch(String)).toBe('first')
      // Atomic, too: only a handler needs a place.
      expect(await atomic.run(runRequest('replayed'), () => 'again').catch(String)).toBe('first')
      expect(told(await atomic[engine].execute(executeRequest('ten-0'), never.work))).toBe('refused in-progress')
    }
    expect(open10).toBe(9)
    door.open()
    expect((await Promise.all(handlers)).map(told)).toEqual(handlers.map(() => 'executed 201 yes'))
    for (let at = 0; at < 10; at += 1) {
      expect(await shop.committed(`ten-${at}`)).toEqual(everything)
      expect(await shop.committed(`outside-${at}`)).toMatchObject({ orders: 1 })
    }
  })

  it('are rolled back on a pool of one, and hear what they did wrong', async () => {
    const { atomic } = await open(1)
    let late: unknown
    const ended = gate()
    const answer = await atomic[engine].execute(executeRequest('one'), async ({ tx }) => {
      await shop.order(tx, 'one')
      await shop.pool.query('select 1')
      late = await shop.order(tx, 'one').catch((error: unknown) => error)
      ended.open()
      return answered(201)
    })
    expect(answer).toMatchObject({
      kind: 'refused',
      refusal: { code: 'transaction-rolled-back', cause: { message: expect.stringMatching(namesTheMistake) } },
    })
    expect(telemetry.told).toContainEqual([
      'a handler misused its transaction',
      expect.objectContaining({ operation: operationName }),
    ])
    await ended.opened
    expect(late).toMatchObject({ message: expect.stringMatching(namesTheMistake) })
    expect(await shop.committed('one')).toEqual(nothing)
    const better = ordering(shop, 'one', () => answered(201))
    expect(told(await atomic[engine].execute(executeRequest('one'), better.work))).toBe('executed 201 yes')
  })

  it('are rolled back when they hold what they took of the pool and want more, and close the door for nobody', async () => {
    const { latchkey, atomic } = await open(3)
    const guarded = latchkey.guarded('guarded.create', { onFailure: 'hold' })
    const answers = await Promise.all(
      ['a', 'b'].map(key =>
        atomic[engine].execute(executeRequest(key), async ({ tx }) => {
          await shop.order(tx, key)
          const [one, two] = [await shop.pool.connect(), await shop.pool.connect()]
          one.release()
          two.release()
          return answered(201)
        }),
      ),
    )
    expect(answers.map(told).filter(each => each !== 'executed 201 yes')).toContain('refused transaction-rolled-back')
    await eventually(() => shop.pool.totalCount === shop.pool.idleCount)
    expect(await guarded.run(runRequest('after'), () => 'well')).toBe('well')
    const better = ordering(shop, 'after', () => answered(201))
    expect(told(await atomic[engine].execute(executeRequest('after'), better.work))).toBe('executed 201 yes')
  })

  it('are no reason to roll back who works with its transaction, or who is idle while nobody waits', async () => {
    const { atomic } = await open(2)
    const hog = await shop.pool.connect()
    const idle = new pg.Client({ connectionString: database.url })
    await idle.connect()
    // Six seconds of queries, and somebody waits for the pool all the while.
    const waiting = shop.pool.query('select 1')
    const working = await atomic[engine].execute(executeRequest('working'), async ({ tx }) => {
      await shop.order(tx, 'working')
      for (let second = 0; second < 6; second += 1) await (tx as pg.PoolClient).query('select pg_sleep(1)')
      await (tx as pg.PoolClient).query('select pg_sleep(6)')
      return answered(201)
    })
    expect(told(working)).toBe('executed 201 yes')
    hog.release()
    await waiting
    const still = await atomic[engine].execute(executeRequest('still'), async ({ tx }) => {
      await shop.order(tx, 'still')
      await idle.query('select pg_sleep(7)')
      return answered(201)
    })
    expect(told(still)).toBe('executed 201 yes')
    await idle.end()
  })

  it('leave a place in time or are answered for: who waits longer hears 503 overloaded, and the circuit stays closed', async () => {
    const { latchkey, atomic } = await open(2)
    const guarded = latchkey.guarded('guarded.create', { onFailure: 'hold' })
    const door = gate()
    const first = ordering(shop, 'first', () => door.opened.then(() => answered(201)))
    const holding = atomic[engine].execute(executeRequest('first'), first.work)
    await eventually(() => first.calls === 1)
    const others = await Promise.all(
      Array.from({ length: 8 }, (_, at) => {
        const other = ordering(shop, `other-${at}`, () => answered(201))
        return atomic[engine].execute(executeRequest(`other-${at}`), other.work)
      }),
    )
    expect(others.map(told)).toEqual(others.map(() => 'refused overloaded'))
    const beside = guarded.run(runRequest('beside'), () => 'well').catch((error: unknown) => error)
    expect(await beside).toBe('well')
    door.open()
    expect(told(await holding)).toBe('executed 201 yes')
    const next = ordering(shop, 'next', () => answered(201))
    expect(told(await atomic[engine].execute(executeRequest('next'), next.work))).toBe('executed 201 yes')
    expect(await shop.committed('other-0')).toEqual(nothing)
  })
})
