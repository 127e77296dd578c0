import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Attempt, Work } from '../../src/engine/answer.ts'
import type { GuardedExecution } from '../../src/engine/execution.ts'
import { engine } from '../../src/engine/internal.ts'
import { notExecuted, outcomeUnknown } from '../../src/ports/errors.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import {
  act,
  answered,
  executeRequest,
  idOf,
  latchkeyOn,
  operationName,
  rowOf,
  runRequest,
  type TestLatchkey,
  told,
} from './fixture.ts'

let store: Store
let latchkey: TestLatchkey
let runs: number

beforeEach(() => {
  store = memoryStore()
  latchkey = latchkeyOn(store)
  runs = 0
})
afterEach(() => latchkey.close())

const guarded = (onFailure: 'hold' | 'rerun' | 'store', options = {}) =>
  latchkey.guarded(operationName, { onFailure, ...options })

/** Ends as told the first time, and well afterwards. */
function failingOnce(error: unknown) {
  return () => {
    runs += 1
    if (runs === 1) throw error
    return { run: runs }
  }
}
const endingOnce = (attempt: Attempt) => async () => {
  runs += 1
  return runs === 1 ? attempt : answered(201)
}

describe('a handler that throws', () => {
  it('does not run again under hold, although it charged before its TypeError', async () => {
    const bug = new TypeError('undefined is not a function')
    const charge = failingOnce(bug)
    await expect(guarded('hold').run(runRequest('k'), charge)).rejects.toMatchObject({
      code: 'outcome-unknown',
      cause: bug,
    })
    await expect(guarded('hold').run(runRequest('k'), charge)).rejects.toMatchObject({
      code: 'outcome-unknown',
      retryAfterMs: 30_000,
    })
    expect(runs).toBe(1)
    expect(await rowOf(store, 'k')).toMatchObject({ state: 'unknown', lastErrorCode: 'TypeError' })
  })

  it('runs again under rerun, and its own error reaches the caller', async () => {
    const bug = new TypeError('x')
    const handler = failingOnce(bug)
    await expect(guarded('rerun').run(runRequest('k'), handler)).rejects.toBe(bug)
    expect(await rowOf(store, 'k')).toMatchObject({ state: 'failed_retryable' })
    expect(await guarded('rerun').run(runRequest('k'), handler)).toEqual({ run: 2 })
    expect(await guarded('rerun').run(runRequest('k'), handler)).toEqual({ run: 2 })
    expect(runs).toBe(2)
  })

  it('is kept under store: the first caller gets the error, a retry a stored failure', async () => {
    const bug = new TypeError('card 4242')
    const handler = failingOnce(bug)
    await expect(guarded('store').run(runRequest('k'), handler)).rejects.toBe(bug)
    await expect(guarded('store').run(runRequest('k'), handler)).rejects.toMatchObject({ code: 'stored-failure' })
    expect(runs).toBe(1)
    const { record } = await store.inspect(idOf('k'))
    expect(Buffer.from(record?.outcome?.body ?? []).toString()).toBe('{"error":"TypeError"}')
  })

  it('may rethrow through adapters that reject: it is a throw all the same', async () => {
    const broken = () => Promise.reject(new TypeError('x'))
    expect(told(await guarded('hold')[engine].execute(executeRequest('k'), broken))).toBe('refused outcome-unknown')
    expect(await rowOf(store, 'k')).toMatchObject({ state: 'unknown' })
  })
})

describe('a 5xx', () => {
  it('is unknown under hold: the caller’s own attempt first, then a retry’s refusal', async () => {
    const work = endingOnce(answered(502))
    expect(await guarded('hold')[engine].execute(executeRequest('k'), work)).toMatchObject({
      refusal: { code: 'outcome-unknown', ownAttempt: true },
    })
    expect(await guarded('hold')[engine].execute(executeRequest('k'), work)).toMatchObject({
      refusal: { code: 'outcome-unknown', ownAttempt: false },
    })
    expect(runs).toBe(1)
  })

  it('reaches the caller under rerun, and the retry runs', async () => {
    const work = endingOnce(answered(502))
    expect(told(await guarded('rerun')[engine].execute(executeRequest('k'), work))).toBe('executed 502 not-stored')
    expect(told(await guarded('rerun')[engine].execute(executeRequest('k'), work))).toBe('executed 201 yes')
  })

  it('is kept and replayed under store', async () => {
    const work = endingOnce(answered(502))
    expect(told(await guarded('store')[engine].execute(executeRequest('k'), work))).toBe('executed 502 yes')
    expect(told(await guarded('store')[engine].execute(executeRequest('k'), work))).toBe('replayed 502')
    expect(runs).toBe(1)
  })
})

describe('what the handler says about itself', () => {
  const wrapped = (said: Error) => new Error('route', { cause: new Error('service', { cause: said }) })

  it.each(['hold', 'rerun', 'store'] as const)('frees the key by notExecuted under %s', async onFailure => {
    const handler = failingOnce(wrapped(notExecuted(new Error('refused'))))
    await expect(guarded(onFailure).run(runRequest('k'), handler)).rejects.toThrow('route')
    expect(await guarded(onFailure).run(runRequest('k'), handler)).toEqual({ run: 2 })
  })

  it.each(['hold', 'rerun', 'store'] as const)('holds the key by outcomeUnknown under %s', async onFailure => {
    const handler = failingOnce(wrapped(outcomeUnknown(new Error('timeout'))))
    await expect(guarded(onFailure).run(runRequest('k'), handler)).rejects.toMatchObject({ code: 'outcome-unknown' })
    await expect(guarded(onFailure).run(runRequest('k'), handler)).rejects.toMatchObject({ code: 'outcome-unknown' })
    expect(runs).toBe(1)
  })

  it('counts also when the framework rendered it as an answer', async () => {
    const work = endingOnce(answered(409, 'conflict', wrapped(outcomeUnknown())))
    expect(told(await guarded('rerun')[engine].execute(executeRequest('k'), work))).toBe('refused outcome-unknown')
    expect(await rowOf(store, 'k')).toMatchObject({ state: 'unknown' })
  })
})

describe('an answer', () => {
  it.each([401, 403, 408, 425, 429])(
    'of %d is stored under hold: nothing proves that nothing was done',
    async status => {
      for (const [key, error] of [['returned'], ['thrown', new Error('quota')]] as const) {
        runs = 0
        const work = endingOnce(answered(status, 'not now', error))
        expect(told(await guarded('hold')[engine].execute(executeRequest(key), work))).toBe(`executed ${status} yes`)
        expect(told(await guarded('hold')[engine].execute(executeRequest(key), work))).toBe(`replayed ${status}`)
        expect(runs).toBe(1)
      }
    },
  )

  it.each([401, 403, 408, 425, 429])('of %d leaves the key free under rerun', async status => {
    for (const [key, error] of [['returned'], ['thrown', new Error('quota')]] as const) {
      runs = 0
      const work = endingOnce(answered(status, 'not now', error))
      expect(told(await guarded('rerun')[engine].execute(executeRequest(key), work))).toBe(
        `executed ${status} not-stored`,
      )
      expect(told(await guarded('rerun')[engine].execute(executeRequest(key), work))).toBe('executed 201 yes')
    }
  })

  it.each(['hold', 'rerun', 'store'] as const)(
    'leaves the key free under %s when the handler said notExecuted() before it',
    async onFailure => {
      const work: Work<GuardedExecution> = async execution => {
        runs += 1
        if (runs === 2) return answered(201)
        // Taken off the execution, as handlers do with what they need of it.
        const { notExecuted: nothingDone } = execution
        nothingDone()
        return answered(429)
      }
      expect(told(await guarded(onFailure)[engine].execute(executeRequest('k'), work))).toBe('executed 429 not-stored')
      expect(await rowOf(store, 'k')).toMatchObject({ state: 'failed_retryable', lastErrorCode: 'not-executed' })
      expect(told(await guarded(onFailure)[engine].execute(executeRequest('k'), work))).toBe('executed 201 yes')
      expect(told(await guarded(onFailure)[engine].execute(executeRequest('k'), work))).toBe('replayed 201')
    },
  )

  it('of a plain function leaves the key free when it said notExecuted()', async () => {
    const busy = (execution: GuardedExecution) => {
      runs += 1
      if (runs === 1) execution.notExecuted()
      return { run: runs }
    }
    for (const run of [1, 2, 2]) expect(await guarded('hold').run(runRequest('k'), busy)).toEqual({ run })
  })

  it('over the cap reaches the first caller whole; a retry is told and nothing runs', async () => {
    const capped = guarded('hold', { outcomeBytesMax: 10 })
    const big = () => {
      runs += 1
      return 'x'.repeat(100)
    }
    expect(await capped.run(runRequest('k'), big)).toHaveLength(100)
    await expect(capped.run(runRequest('k'), big)).rejects.toMatchObject({ code: 'response-not-stored' })
    expect(runs).toBe(1)
  })

  it('that is not JSON is a failure after the effect', async () => {
    // The types refuse both; JavaScript does not.
    for (const value of [1n, () => {}] as unknown as string[]) {
      const run = guarded('hold').run(runRequest(`a ${typeof value}`), () => value)
      await expect(run).rejects.toMatchObject({ code: 'outcome-unknown' })
    }
  })

  it('is the same value for the first caller and for a retry', async () => {
    const values = [undefined, null, 0, '', false, { at: new Date(0) }, [1, { deep: ['é', '\u0000'] }]]
    for (const [index, value] of values.entries()) {
      const first = await guarded('hold').run(runRequest(`k${index}`), () => value)
      expect(await guarded('hold').run(runRequest(`k${index}`), () => 'another')).toEqual(first)
      expect(first).toEqual(value === undefined ? undefined : JSON.parse(JSON.stringify(value)))
    }
  })
})

it('lets an operator settle with an answer that has no body', async () => {
  await guarded('hold')
    .run(runRequest('k'), failingOnce(new Error('x')))
    .catch(() => {})
  const row = { scope: 'acme', operation: operationName, key: 'k' }
  expect(await latchkey.settle(row, { kind: 'happened', status: 204, json: undefined }, act)).toEqual({
    kind: 'settled',
  })
  expect(await guarded('hold').run(runRequest('k'), () => 'another')).toBeUndefined()
})
