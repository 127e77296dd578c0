import { expect, it } from 'vitest'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { outcomeUnknown } from '../../src/ports/errors.ts'
import { latchkeyOn, operationName, rowOf, runRequest } from '../engine/fixture.ts'
import { postgresShop } from './fixture.ts'

describePostgres('a handler in the caller’s own transaction that does not know how it ended', database => {
  it('is remembered before the caller hears of it, and runs no more', async () => {
    const shop = await postgresShop(database.url)
    const operation = latchkeyOn(shop.store).atomic(operationName)
    let calls = 0
    const ask = async () => {
      const client = await shop.pool.connect()
      await client.query('begin')
      try {
        return await operation.run({ ...runRequest('unknown'), tx: client }, async ({ tx }) => {
          calls += 1
          await shop.order(tx, 'unknown')
          throw outcomeUnknown('socket hang up')
        })
      } finally {
        await client.query('rollback')
        client.release()
      }
    }
    try {
      for (let times = 0; times < 2; times++) await expect(ask()).rejects.toMatchObject({ code: 'outcome-unknown' })
      expect(await rowOf(shop.store, 'unknown')).toMatchObject({ state: 'unknown', fence: 1 })
      expect([calls, (await shop.committed('unknown')).orders]).toEqual([1, 0])
    } finally {
      await shop.close()
    }
  })
})
