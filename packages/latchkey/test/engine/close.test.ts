import { expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { countingClock } from './fake-clock.ts'
import {
  answered,
  eventually,
  executeRequest,
  faultyStore,
  gate,
  latchkeyOn,
  operationName,
  runRequest,
  told,
} from './fixture.ts'

function instance(options: { onInProgress?: 'wait' } = {}) {
  const clock = countingClock()
  const faulty = faultyStore(memoryStore())
  const latchkey = latchkeyOn(faulty.store, { clock })
  return { clock, faulty, latchkey, operation: latchkey.guarded(operationName, { onFailure: 'hold', ...options }) }
}

it('waits for what is under way, and its outcome is stored', async () => {
  const { latchkey, operation, faulty } = instance()
  const { opened, open } = gate()
  const running = operation.run(runRequest('k'), () => opened.then(() => 'done'))
  await eventually(() => faulty.calls.claim === 1)
  const closing = latchkey.close()
  open()
  expect(await closing).toEqual({ drained: true, unstored: 0 })
  expect(faulty.calls.complete).toBe(1)
  expect(await running).toBe('done')
})

it('gives up after its time and says so', async () => {
  const { latchkey, operation, faulty } = instance()
  const { opened, open } = gate()
  const running = operation.run(runRequest('k'), () => opened)
  await eventually(() => faulty.calls.claim === 1)
  expect(await latchkey.close({ timeoutMs: 50 })).toEqual({ drained: false, unstored: 0 })
  open()
  await running
})

it('refuses new requests as soon as the shutdown begins, while the old ones end', async () => {
  const { latchkey, operation, faulty } = instance()
  const { opened, open } = gate()
  const running = operation.run(runRequest('k'), () => opened.then(() => 'done'))
  await eventually(() => faulty.calls.claim === 1)
  const closing = latchkey.close()
  expect(told(await operation[engine].execute(executeRequest('new'), async () => answered(201)))).toBe(
    'refused store-unavailable',
  )
  expect(faulty.calls.claim).toBe(1)
  open()
  expect(await closing).toEqual({ drained: true, unstored: 0 })
  expect(await running).toBe('done')
  await expect(operation.run(runRequest('later'), () => 1)).rejects.toMatchObject({ code: 'store-unavailable' })
})

it('lets a request that waits for its twin still have its answer', async () => {
  const { latchkey, operation, faulty } = instance({ onInProgress: 'wait' })
  const { opened, open } = gate()
  const first = operation.run(runRequest('k'), () => opened.then(() => 'done'))
  const second = operation.run(runRequest('k'), () => 'again')
  await eventually(() => faulty.calls.claim >= 2)
  const closing = latchkey.close()
  open()
  expect(await Promise.all([first, second])).toEqual(['done', 'done'])
  expect(await closing).toEqual({ drained: true, unstored: 0 })
})

it('leaves no timer behind, neither its own nor a handler’s', async () => {
  const { latchkey, operation, clock } = instance()
  await operation.run(runRequest('k'), () => 'done')
  await operation.run(runRequest('k'), () => 'again')
  expect(await latchkey.close()).toEqual({ drained: true, unstored: 0 })
  await new Promise(setImmediate)
  expect(clock.live()).toBe(0)
})
