import { expect, it } from 'vitest'
import { outcomeUnknown } from '../../src/ports/errors.ts'
import { act, eventually, idOf, latchkeyOn, operationName, rowOf, runRequest } from '../engine/fixture.ts'
import { nothing, sqliteShop } from './fixture.ts'

it('remembers outside the caller’s transaction what its handler does not know, once that has ended', async () => {
  const shop = await sqliteShop()
  const latchkey = latchkeyOn(shop.store)
  const operation = latchkey.atomic(operationName)
  let calls = 0
  const ask = async () => {
    shop.app.exec('begin immediate')
    try {
      return await operation.run({ ...runRequest('unknown'), tx: shop.app }, async ({ tx }) => {
        calls += 1
        await shop.order(tx, 'unknown')
        throw outcomeUnknown('socket hang up')
      })
    } finally {
      shop.app.exec('rollback')
    }
  }
  try {
    await expect(ask()).rejects.toMatchObject({ code: 'outcome-unknown' })
    await eventually(async () => (await shop.store.read(idOf('unknown')))?.state === 'unknown')
    await expect(ask()).rejects.toMatchObject({ code: 'outcome-unknown' })
    expect([calls, (await shop.committed('unknown')).orders]).toEqual([1, nothing.orders])
    await latchkey.settle({ id: idOf('unknown') }, { kind: 'never-happened' }, act)
    expect((await rowOf(shop.store, 'unknown')).state).toBe('failed_retryable')
  } finally {
    await latchkey.close()
    await shop.close()
  }
})
