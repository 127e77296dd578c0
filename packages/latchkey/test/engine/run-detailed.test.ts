import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type FaultyStore,
  faultyStore,
  latchkeyOn,
  operationName,
  rejects,
  runRequest,
  type TestLatchkey,
} from './fixture.ts'

let faults: FaultyStore
let latchkey: TestLatchkey
beforeEach(() => {
  faults = faultyStore()
  latchkey = latchkeyOn(faults.store)
})
afterEach(() => latchkey.close({ timeoutMs: 1 }))

describe('what runDetailed says of a value', () => {
  it.each([
    ['guarded', () => latchkey.guarded(operationName, { onFailure: 'hold', outcomeBytesMax: 20 })],
    ['atomic', () => latchkey.atomic(operationName, { outcomeBytesMax: 20 })],
  ])('is yes where a retry gets it, and too-large where a retry is told that it happened: %s', async (_, declare) => {
    const operation = declare()
    const small = { value: { id: 7 }, kept: 'yes', replayed: false }
    expect(await operation.runDetailed(runRequest('small'), () => ({ id: 7 }))).toEqual(small)
    expect(await operation.runDetailed(runRequest('small'), () => ({ id: 8 }))).toEqual({ ...small, replayed: true })

    const text = 'x'.repeat(19)
    expect(await operation.runDetailed(runRequest('large'), () => text)).toEqual({
      value: text,
      kept: 'too-large',
      replayed: false,
    })
    const retry = operation.runDetailed(runRequest('large'), () => 'again')
    await expect(retry).rejects.toMatchObject({ code: 'response-not-stored' })
    // With its quotes it has as many bytes as may be stored.
    expect(await operation.runDetailed(runRequest('fits'), () => 'x'.repeat(18))).toMatchObject({ kept: 'yes' })
    expect(await operation.runDetailed(runRequest('fits'), () => 'again')).toMatchObject({ replayed: true })
  })

  it('is not-stored where storeStatus refuses it: a retry runs again', async () => {
    const operation = latchkey.guarded(operationName, { onFailure: 'rerun', storeStatus: status => status !== 200 })
    expect(await operation.runDetailed(runRequest('k'), () => 1)).toMatchObject({ value: 1, kept: 'not-stored' })
    expect(await operation.runDetailed(runRequest('k'), () => 2)).toMatchObject({ value: 2, replayed: false })
  })

  it('is failed where the store does not take it in time', async () => {
    faults.break('complete', rejects)
    const operation = latchkey.guarded(operationName, { onFailure: 'hold' })
    expect(await operation.runDetailed(runRequest('k'), () => 1)).toEqual({ value: 1, kept: 'failed', replayed: false })
  })

  it('is unprotected where it ran without the store', async () => {
    faults.break('claim', rejects)
    const operation = latchkey.guarded(operationName, { onFailure: 'rerun', onStoreDown: 'run-unprotected' })
    expect(await operation.runDetailed(runRequest('k'), () => 1)).toMatchObject({ value: 1, kept: 'unprotected' })
  })
})
