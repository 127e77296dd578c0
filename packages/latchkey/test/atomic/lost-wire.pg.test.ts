import { afterAll, beforeAll, expect, it } from 'vitest'
import type pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { startTcpProxy, type TcpProxy } from '../../../../test/servers/tcp-proxy.ts'
import type { Attempt } from '../../src/engine/answer.ts'
import { engine } from '../../src/engine/internal.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import { outcomeUnknown } from '../../src/ports/errors.ts'
import { answered, executeRequest, latchkeyOn, operationName, rowOf, told } from '../engine/fixture.ts'
import { everything, nothing, ordering, postgresShop, type Shop } from './fixture.ts'
import { postgresJsShop, type Tx } from './postgres-js-shop.ts'

interface Driver {
  open(url: string): Promise<Shop>
  /** What begins a transaction, as it is sent. */
  readonly begin: string
  /** Sends a statement through the tx of a handler. */
  send(tx: unknown, text: string): Promise<unknown>
}

const drivers: Readonly<Record<string, Driver>> = {
  pg: { open: postgresShop, begin: 'BEGIN', send: (tx, text) => (tx as pg.PoolClient).query(text) },
  'postgres.js': { open: postgresJsShop, begin: 'begin', send: async (tx, text) => await (tx as Tx).unsafe(text) },
}

for (const [name, { open, begin, send }] of Object.entries(drivers)) {
  describePostgres(`an atomic operation on ${name} whose connection breaks`, database => {
    let proxy: TcpProxy
    /** Behind the wire that is cut. */
    let wired: Shop
    /** Looks at the same database over a whole wire. */
    let shop: Shop
    let operation: AtomicOperation<unknown>
    beforeAll(async () => {
      shop = await postgresShop(database.url)
      proxy = await startTcpProxy(database.url)
      wired = await open(proxy.through(database.url))
      operation = latchkeyOn(wired.store).atomic(operationName)
    })
    afterAll(async () => {
      await Promise.all([shop.close(), wired.close()])
      await proxy.close()
    })

    const rerun = async (key: string) => {
      const retry = ordering(wired, key, () => answered(201, 'the retry'))
      const answer = told(await operation[engine].execute(executeRequest(key), retry.work))
      return { answer, calls: retry.calls }
    }

    it('is committed when only the reply to COMMIT was lost: said so, and replayed to the retry', async () => {
      const key = 'reply-lost'
      let cut: Promise<void> | undefined
      const handler = ordering(wired, key, () => {
        cut = proxy.cutAt('COMMIT', 'reply')
        return answered(201)
      })
      expect(told(await operation[engine].execute(executeRequest(key), handler.work))).toBe('executed 201 yes')
      await cut
      expect(await shop.committed(key)).toEqual(everything)
      expect(await rerun(key)).toEqual({ answer: 'replayed 201', calls: 0 })
      expect(handler.calls).toBe(1)
    })

    it('has not happened when COMMIT never arrived: said so, and the retry runs', async () => {
      const key = 'commit-lost'
      let cut: Promise<void> | undefined
      const handler = ordering(wired, key, () => {
        cut = proxy.cutAt('COMMIT', 'request')
        return answered(201)
      })
      const answer = await operation[engine].execute(executeRequest(key), handler.work)
      expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'store-unavailable' } })
      await cut
      expect(await shop.committed(key)).toEqual(nothing)
      expect(await rerun(key)).toEqual({ answer: 'executed 201 yes', calls: 1 })
      expect(await shop.committed(key)).toEqual(everything)
    })

    /** Sends a query that is lost together with the connection. */
    const cutInside = async (tx: unknown): Promise<unknown> => {
      const cut = proxy.cutAt('cut_here', 'request')
      const failure = await send(tx, 'select 1 as cut_here').catch((error: unknown) => error)
      await cut
      return failure
    }
    const executeCut = (key: string, end: (failure: unknown) => Attempt) =>
      operation[engine].execute(executeRequest(key), async ({ tx }) => {
        await wired.order(tx, key)
        return end(await cutInside(tx))
      })

    it('is rolled back and answered 503 when the connection broke under the handler, and the retry runs', async () => {
      const answer = await executeCut('cut', () => answered(201))
      expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'store-unavailable', retryAfterMs: 1_000 } })
      expect(await shop.committed('cut')).toEqual(nothing)
      expect(await rerun('cut')).toEqual({ answer: 'executed 201 yes', calls: 1 })
    })

    it('passes on the error that the handler got from the broken connection, and the retry runs', async () => {
      expect(told(await executeCut('cut-threw', error => ({ kind: 'threw', error })))).toBe('threw not-stored')
      expect(told(await executeCut('cut-threw', error => answered(500, 'oops', error)))).toBe('executed 500 not-stored')
      expect(await shop.committed('cut-threw')).toEqual(nothing)
      expect(await rerun('cut-threw')).toEqual({ answer: 'executed 201 yes', calls: 1 })
    })

    it('keeps a thrown 4xx and an unknown over another connection', async () => {
      const refusal = await executeCut('cut-4xx', error => answered(404, 'no such order', error))
      expect(told(refusal)).toBe('executed 404 yes')
      expect(await shop.committed('cut-4xx')).toEqual({ orders: 0, keys: 1, outcomes: 1 })
      const unknown = await executeCut('cut-unknown', error => ({ kind: 'threw', error: outcomeUnknown(error) }))
      expect(told(unknown)).toBe('refused outcome-unknown')
      expect((await rowOf(shop.store, 'cut-unknown')).state).toBe('unknown')
    })

    it('is never begun when the connection breaks at BEGIN or at the reservation', async () => {
      for (const word of [begin, 'reserve']) {
        const handler = ordering(wired, word, () => answered(201))
        const cut = proxy.cutAt(word, 'request')
        expect(told(await operation[engine].execute(executeRequest(word), handler.work))).toBe(
          'refused store-unavailable',
        )
        await cut
        expect(handler.calls).toBe(0)
        expect(await rerun(word)).toEqual({ answer: 'executed 201 yes', calls: 1 })
      }
    })

    it('serves every other key while wires are cut again and again', async () => {
      for (let round = 0; round < 12; round += 1) {
        await executeCut(`storm-${round}`, () => answered(201))
        const calm = await rerun(`calm-${round}`)
        expect(calm).toEqual({ answer: 'executed 201 yes', calls: 1 })
      }
    })
  })
}
