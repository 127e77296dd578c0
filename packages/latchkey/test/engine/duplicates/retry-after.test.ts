/** How long a client is told to wait, by a clock that stands still: the store's and the process's. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Answer } from '../../../src/engine/answer.ts'
import { engine } from '../../../src/engine/internal.ts'
import type { Store } from '../../../src/ports/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { type FakeClock, fakeClock } from '../fake-clock.ts'
import { answered, executeRequest, gate, latchkeyOn, operationName, rowOf, type TestLatchkey } from '../fixture.ts'
import { present } from '../../present.ts'

let clock: FakeClock
let store: Store
let latchkey: TestLatchkey

beforeEach(() => {
  clock = fakeClock()
  store = memoryStore({ clock })
  latchkey = latchkeyOn(store, { clock })
})
afterEach(async () => {
  const closed = latchkey.close()
  clock.advance(10_000)
  await closed
})

const operation = () => latchkey.guarded(operationName, { onFailure: 'rerun', leaseMs: 5_000 })

async function ranFor(ms: number, key: string): Promise<void> {
  await operation()[engine].execute(executeRequest(key), async () => {
    clock.advance(ms)
    return answered(201)
  })
}

function waitOf(answer: Answer): unknown {
  return answer.kind === 'refused' ? [answer.refusal.code, answer.refusal.retryAfterMs] : answer.kind
}

/** What a twin hears that asks when the first has run for so long. */
async function twinAfter(elapsedMs: number, key: string): Promise<unknown> {
  const { opened, open } = gate()
  const first = operation()[engine].execute(executeRequest(key), async () => {
    await opened
    return answered(201)
  })
  await new Promise(resolve => setImmediate(resolve))
  clock.advance(elapsedMs)
  const twin = await operation()[engine].execute(executeRequest(key), async () => answered(500))
  open()
  await first
  return waitOf(twin)
}

it('is a second without history, whatever is left of the lease', async () => {
  expect(await twinAfter(100, 'k')).toEqual(['in-progress', 1_000])
})

it('is what the operation usually takes, minus what has elapsed, also past the lease', async () => {
  await ranFor(3_000, 'a')
  await ranFor(30_000, 'b')
  expect(await twinAfter(2_000, 'c')).toEqual(['in-progress', 28_000])
})

it('is at least a second', async () => {
  await ranFor(3_000, 'a')
  expect(await twinAfter(2_900, 'b')).toEqual(['in-progress', 1_000])
})

it('counts nothing as elapsed of a later attempt, whose beginning is not stored', async () => {
  await ranFor(3_000, 'a')
  const failing = async () => answered(503)
  await operation()[engine].execute(executeRequest('b'), failing)
  clock.advance(60_000)
  expect(await twinAfter(2_000, 'b')).toEqual(['in-progress', 3_000])
})

it('is the time until the next look-up of an unknown row, where somebody looks, and half a minute before', async () => {
  const hold = latchkey.guarded('refunds.create', { onFailure: 'hold' })
  const request = executeRequest('k')
  const identity = { ...request.identity, operation: 'refunds.create' }
  const ask = async () => waitOf(await hold[engine].execute({ ...request, identity }, async () => answered(500)))
  expect(await ask()).toEqual(['outcome-unknown', 1_000])
  expect(await ask()).toEqual(['outcome-unknown', 30_000])
  expect((await rowOf(store, 'k')).state).toBe('unknown')
  const asked = { operation: 'refunds.create', firstInMs: 0, leaseMs: 20_000, limit: 1 }
  const [lookup] = await present(store.reconciliation).lookups(asked)
  expect(await ask()).toEqual(['outcome-unknown', 20_000])
  if (lookup === undefined) throw new Error('the row is due')
  await present(store.reconciliation).postpone(lookup, 400_000)
  expect(await ask()).toEqual(['outcome-unknown', 400_000])
  clock.advance(399_900)
  expect(await ask()).toEqual(['outcome-unknown', 1_000])
})
