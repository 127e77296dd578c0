import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import type { SqliteTx } from '../../src/stores/sqlite/index.ts'
import {
  answered,
  eventually,
  executeRequest,
  gate,
  idOf,
  latchkeyOn,
  operationName,
  runRequest,
  told,
} from '../engine/fixture.ts'
import { everything, nothing, ordering, sqliteShop, type SqliteShop } from './fixture.ts'

let shop: SqliteShop
afterEach(() => shop.close())

const twenty = Array.from({ length: 20 }, (_, at) => at)

/**
 * An atomic handler waits for 20 replays to be answered and then ends as told, amid 20 guarded operations and 20 writes of
 * the application.
 */
async function serveAround(round: string, status: number): Promise<void> {
  const latchkey = latchkeyOn(shop.store)
  const atomic = latchkey.atomic(operationName)
  const guarded = latchkey.guarded('guarded.create', { onFailure: 'hold' })
  for (const at of twenty) await atomic.run(runRequest(`replay-${round}-${at}`), () => at)

  let waiting = true
  const replayed = gate()
  const handler = ordering(shop, round, async () => {
    await replayed.opened
    waiting = false
    return answered(status)
  })
  const slow = atomic[engine].execute(executeRequest(round), handler.work)
  await eventually(() => handler.calls === 1)
  const replays = twenty.map(async at => {
    expect(await atomic.run(runRequest(`replay-${round}-${at}`), () => 'ran again')).toBe(at)
    expect(waiting).toBe(true)
  })
  const others = twenty.map(at => guarded.run(runRequest(`guarded-${round}-${at}`), () => at))
  const writes = twenty.map(at =>
    shop.store.exclusive(() => {
      expect(waiting).toBe(false)
      shop.app.prepare('insert into orders values (?)').run([`app-${round}-${at}`])
    }),
  )
  await Promise.all(replays)
  expect(await shop.committed(round)).toEqual(nothing)
  replayed.open()
  expect(told(await slow)).toBe(status < 500 ? `executed ${status} yes` : `executed ${status} not-stored`)
  expect(await Promise.all(others)).toEqual(twenty)
  await Promise.all(writes)

  expect(await shop.committed(round)).toEqual(status < 500 ? everything : nothing)
  // Nobody's write went into the handler's transaction: they are there, whichever way it ended.
  for (const at of twenty) {
    expect(await shop.committed(`app-${round}-${at}`)).toMatchObject({ orders: 1 })
    expect(await shop.store.read(idOf(`guarded-${round}-${at}`, 'guarded.create'))).toMatchObject({
      state: 'completed',
    })
  }
}

describe('an atomic handler that waits, on SQLite', () => {
  beforeEach(async () => {
    shop = await sqliteShop()
  })

  it.each([201, 500])(
    'keeps nobody from replaying and joins nobody’s writes with its own when it ends with %i',
    status => serveAround(`busy-${status}`, status),
  )
})

describe('an atomic handler that keeps its transaction open for too long, on SQLite', () => {
  beforeEach(async () => {
    shop = await sqliteShop({ transactionMs: 100 })
  })

  it('is rolled back, told so, and writes nothing later; the retry runs', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    let late: unknown
    let ended = false
    const door = gate()
    // Answered although the handler cannot go on before that.
    const answer = await operation[engine].execute(executeRequest('slow'), async ({ tx }) => {
      await shop.order(tx, 'slow')
      await door.opened
      late = await shop.order(tx, 'slow').catch((error: unknown) => error)
      ended = true
      return answered(201)
    })
    expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'store-unavailable' } })
    expect(answer.kind === 'refused' && String(answer.refusal.cause)).toMatch(/open for 100 ms and was rolled back/)
    expect(await shop.committed('slow')).toEqual(nothing)
    const retry = ordering(shop, 'slow', () => answered(201))
    expect(told(await operation[engine].execute(executeRequest('slow'), retry.work))).toBe('executed 201 yes')
    door.open()
    await eventually(() => ended)
    expect(late).toMatchObject({ code: 'store-unavailable' })
    expect(await shop.committed('slow')).toEqual(everything)
  })

  it('does not close the door for others, however often it happens', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    for (const at of twenty.slice(0, 6)) {
      const slow = ordering(shop, `slow-${at}`, () => pause(130).then(() => answered(201)))
      expect(told(await operation[engine].execute(executeRequest(`slow-${at}`), slow.work))).toBe(
        'refused store-unavailable',
      )
    }
    const quick = ordering(shop, 'quick', () => answered(201))
    expect(told(await operation[engine].execute(executeRequest('quick'), quick.work))).toBe('executed 201 yes')
  })

  it('gets a 500 when a statement of its own rolled the transaction back, and its answer is not kept without its rows', async () => {
    const operation = latchkeyOn(shop.store).atomic(operationName)
    const answer = await operation[engine].execute(executeRequest('ended'), async ({ tx }) => {
      await shop.order(tx, 'ended')
      const sqlite = tx as SqliteTx
      sqlite.exec('create table once (id integer primary key on conflict rollback); insert into once values (1)')
      try {
        sqlite.run('insert into once values (1)')
      } catch {
        // Swallowed.
      }
      return answered(201)
    })
    expect(told(answer)).toBe('refused transaction-rolled-back')
    expect(await shop.committed('ended')).toEqual(nothing)
  })
})
