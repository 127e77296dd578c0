import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import type { Recovery, Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { leapingClock } from './fake-clock.ts'
import {
  act,
  answered,
  brief,
  executeRequest,
  idOf,
  latchkeyOn,
  operationName,
  recordingTelemetry,
  rowOf,
  runRequest,
  type TestLatchkey,
  told,
} from './fixture.ts'

let clock: ReturnType<typeof leapingClock>
let store: Store
let latchkey: TestLatchkey
let telemetry: ReturnType<typeof recordingTelemetry>

beforeEach(() => {
  clock = leapingClock()
  store = memoryStore({ clock })
  telemetry = recordingTelemetry()
  latchkey = latchkeyOn(store, { telemetry })
})
afterEach(() => latchkey.close())

const row = (key: string) => ({ scope: 'acme', operation: operationName, key })
const guarded = (onFailure: 'hold' | 'rerun' | 'store', options = {}) =>
  latchkey.guarded(operationName, { onFailure, ...options })

/** What a process leaves that died with the handler under way. */
async function deadOwner(key: string, recovery: Recovery): Promise<void> {
  const { identity, fingerprint } = executeRequest(key)
  const claimId = '00000000-0000-4000-8000-000000000001'
  await store.claim({
    identity,
    fingerprint,
    claimId,
    recovery,
    leaseMs: 30_000,
    expiresInMs: 900_000,
    description: undefined,
  })
  clock.leap(30_000)
}

it.each([
  ['hold', 'hold'],
  ['store', 'hold'],
  ['rerun', 'rerun'],
] as const)('writes at the grant what a death under %s means: %s', async (onFailure, recovery) => {
  const during = await guarded(onFailure).run(runRequest('k'), async () => (await rowOf(store, 'k')).recovery)
  expect(during).toBe(recovery)
})

describe('a dead lease', () => {
  it.each(['hold', 'store'] as const)('under %s is unknown: refused, counted, and not run', async onFailure => {
    await deadOwner('k', 'hold')
    const run = () => guarded(onFailure).run(runRequest('k'), () => 'ran')
    await expect(run()).rejects.toMatchObject({ code: 'outcome-unknown' })
    await expect(run()).rejects.toMatchObject({ code: 'outcome-unknown' })
    expect(await rowOf(store, 'k')).toMatchObject({ state: 'unknown', crashes: 1, fence: 1 })
    expect(telemetry.counted('zombie_key')).toBe(1)
  })

  it('is swept once, however many find it', async () => {
    await deadOwner('k', 'hold')
    const runs = Array.from({ length: 20 }, () =>
      guarded('hold')
        .run(runRequest('k'), () => 'ran')
        .catch((error: unknown) => error),
    )
    for (const error of await Promise.all(runs)) expect(error).toMatchObject({ code: 'outcome-unknown' })
    expect(telemetry.counted('zombie_key')).toBe(1)
  })

  it('under rerun runs again, as the second attempt', async () => {
    await deadOwner('k', 'rerun')
    const seen = await guarded('rerun').run(runRequest('k'), ({ attempt, fence }) => ({ attempt, fence }))
    expect(seen).toEqual({ attempt: 2, fence: 2 })
    expect(telemetry.counted('takeover')).toBe(1)
    expect(await rowOf(store, 'k')).toMatchObject({ state: 'completed', crashes: 1 })
  })
})

describe('an operator', () => {
  it('ends an unknown with the answer clients get from then on', async () => {
    await deadOwner('k', 'hold')
    expect(await latchkey.settle(row('k'), { kind: 'happened', status: 201, json: { id: 7 } }, act)).toEqual({
      kind: 'settled',
    })
    expect(await guarded('hold').run(runRequest('k'), () => 'ran')).toEqual({ id: 7 })
    const { audit, evidence } = await latchkey.inspect(row('k'))
    expect(audit).toMatchObject([{ act: 'settle', by: 'on-call', reason: 'the provider shows it' }])
    expect(evidence).toMatchObject([{ source: 'operator', verdict: 'happened', applied: true }])
  })

  it('ends an unknown as never happened, and the next request runs with the same downstream key', async () => {
    const keys: string[] = []
    const failing = guarded('hold').run(runRequest('k'), ({ downstreamKey }) => {
      keys.push(downstreamKey('charge'))
      throw new Error('timeout')
    })
    await expect(failing).rejects.toMatchObject({ code: 'outcome-unknown' })
    expect(await latchkey.settle({ id: idOf('k') }, { kind: 'never-happened' }, act)).toEqual({ kind: 'settled' })
    const value = await guarded('hold').run(runRequest('k'), ({ downstreamKey, attempt }) => {
      keys.push(downstreamKey('charge'))
      return attempt
    })
    expect(value).toBe(2)
    expect(keys[0]).toBe(keys[1])
  })

  it('finds the work queue, and cannot settle what is not unknown', async () => {
    await guarded('hold').run(runRequest('done'), () => 1)
    await guarded('hold')
      .run(runRequest('k'), () => Promise.reject(new Error('x')))
      .catch(() => {})
    const { records } = await latchkey.list({ state: 'unknown' })
    expect(records.map(({ id }) => id)).toEqual([idOf('k')])
    expect(await latchkey.settle(row('done'), { kind: 'never-happened' }, act)).toEqual({
      kind: 'wrong-state',
      state: 'completed',
    })
    expect(await latchkey.settle(row('nobody'), { kind: 'never-happened' }, act)).toEqual({ kind: 'not-found' })
  })

  it('sees that the owner of a row is silent before a sweep has come, and nothing of the kind on a row that is done', async () => {
    await deadOwner('k', 'hold')
    expect(await latchkey.inspect(row('k'))).toMatchObject({
      record: { state: 'in_progress' },
      cause: 'in_progress_lock_expired',
      steps: [],
      openEffect: undefined,
    })
    await guarded('hold').run(runRequest('done'), () => 1)
    expect((await latchkey.inspect(row('done'))).cause).toBeUndefined()
  })

  it('lists the rows of one tenant, by the scope that the application uses', async () => {
    const operation = guarded('hold')
    for (const scope of ['acme', ['acme', 'alex'], ['acme', 'a/b']])
      await operation.run({ ...runRequest('k'), scope }, () => 1)
    const scopes = async (scope: string | readonly string[]) =>
      (await latchkey.list({ scope })).records.map(record => record.scope)
    expect(await scopes('acme')).toEqual(['acme'])
    expect(await scopes(['acme', 'alex'])).toEqual(['acme/alex'])
    expect(await scopes(['acme', 'a/b'])).toEqual(['acme/a%2Fb'])
    expect(await scopes('nobody')).toEqual([])
    await expect(latchkey.list({ scope: '' })).rejects.toMatchObject({ code: 'scope-unresolved' })
  })

  it('cannot forget a row that is not finished, in whatever state', async () => {
    await deadOwner('owned', 'hold')
    await guarded('hold')
      .run(runRequest('unknown'), () => Promise.reject(new Error('x')))
      .catch(() => {})
    expect(await latchkey.forget(row('owned'), act)).toEqual({ kind: 'wrong-state', state: 'in_progress' })
    expect(await latchkey.forget(row('unknown'), act)).toEqual({ kind: 'wrong-state', state: 'unknown' })
    expect((await latchkey.inspect(row('unknown'))).audit).toEqual([])
  })

  it('is told of a slip, which is no failure of the store and shuts nobody out', async () => {
    const failing = latchkeyOn({ ...store, inspect: () => Promise.reject(new Error('no uuid')) })
    const slips = [
      () => failing.inspect({ id: 'k' }),
      () => failing.settle({ id: '' }, { kind: 'never-happened' }, act),
      () => failing.forget({ id: `${idOf('k')}x` }, act),
      () => failing.list({ after: 'the end' }),
      () => failing.list({ limit: Number.NaN }),
      () => failing.inspect({ id: '%' }),
    ]
    for (const slip of slips) await expect(slip()).rejects.toMatchObject({ code: 'misconfigured' })
    expect(await failing.guarded(operationName, { onFailure: 'hold' }).run(runRequest('k'), () => 'ran')).toBe('ran')
    await failing.close()
  })

  it('forgets a completed row, so that its key is new again', async () => {
    await guarded('hold').run(runRequest('k'), () => 'first')
    expect(await latchkey.forget(row('k'), act)).toEqual({ kind: 'forgotten' })
    expect(await guarded('hold').run(runRequest('k'), () => 'second')).toBe('second')
    expect((await latchkey.inspect(row('k'))).audit).toMatchObject([{ act: 'forget', by: 'on-call' }])
  })

  it.each([
    { by: '', reason: 'x' },
    { by: 'on-call', reason: ' ' },
  ])('must say who and why: %j', async incomplete => {
    await expect(latchkey.settle(row('k'), { kind: 'never-happened' }, incomplete)).rejects.toMatchObject({
      code: 'misconfigured',
    })
    await expect(latchkey.forget(row('k'), incomplete)).rejects.toMatchObject({ code: 'misconfigured' })
  })
})

describe('an owner that was replaced', () => {
  it('gets the winner’s outcome, never its own success, and cannot change the row', async () => {
    const operation = guarded('rerun')
    const stale = await operation[engine].execute(executeRequest('k'), async () => {
      clock.leap(30_000)
      expect(told(await operation[engine].execute(executeRequest('k'), async () => answered(202, 'the winner')))).toBe(
        'executed 202 yes',
      )
      return answered(201, 'the loser')
    })
    expect(told(stale)).toBe('replayed 202')
    expect(telemetry.counted('claim_lost')).toBe(1)
    const { record, evidence } = await store.inspect(idOf('k'))
    expect(Buffer.from(record?.outcome?.body ?? []).toString()).toBe('the winner')
    expect(evidence).toMatchObject([{ source: 'late-owner', applied: false }])
  })

  it('hears in-progress while the winner still runs, and its late failure frees nothing', async () => {
    const operation = guarded('rerun')
    let winner: Promise<unknown> = Promise.resolve()
    let letGo = () => {}
    const stale = await operation[engine].execute(executeRequest('k'), async () => {
      clock.leap(30_000)
      await new Promise<void>(claimed => {
        const blocked = new Promise<void>(resolve => {
          letGo = resolve
        })
        winner = operation.run(runRequest('k'), () => {
          claimed()
          return blocked.then(() => 'winner')
        })
      })
      throw new Error('the loser fails')
    })
    expect(told(stale)).toBe('refused in-progress')
    expect(await rowOf(store, 'k')).toMatchObject({ state: 'in_progress', fence: 2 })
    letGo()
    expect(await winner).toBe('winner')
  })

  it('does not wait for the winner to fail: its handler is never called twice for one caller', async () => {
    let runs = 0
    let winner: Promise<unknown> = Promise.resolve()
    const waiting = guarded('rerun', { onInProgress: 'wait', waitMs: 2_000 })
    const stale = await waiting[engine].execute(executeRequest('k'), async () => {
      runs += 1
      clock.leap(30_000)
      await new Promise<void>(claimed => {
        winner = guarded('rerun').run(runRequest('k'), async () => {
          claimed()
          await new Promise(resolve => setTimeout(resolve, 200))
          throw new Error('the winner fails')
        })
        winner.catch(() => {})
      })
      return answered(201, 'the loser')
    })
    expect(told(stale)).toBe('refused in-progress')
    await expect(winner).rejects.toThrow('the winner fails')
    expect(runs).toBe(1)
  })
})

describe('an expired row', () => {
  it('is a new request with the same downstream key and a higher fence', async () => {
    const seen: unknown[] = []
    const operation = guarded('hold', brief)
    const handler = ({
      downstreamKey,
      fence,
      attempt,
    }: {
      downstreamKey: (name: string) => string
      fence: number
      attempt: number
    }) => {
      seen.push({ key: downstreamKey('charge'), fence, attempt })
      return seen.length
    }
    await operation.run(runRequest('k'), handler)
    clock.leap(brief.retentionMs - 10_000)
    expect(await operation.run(runRequest('k'), handler)).toBe(1)
    clock.leap(brief.holdMsMax + 10_000)
    // Other input too: nothing of the old request counts.
    expect(await operation.run(runRequest('k', { amount: 2 }), handler)).toBe(2)
    expect(seen).toEqual([
      { key: expect.any(String), fence: 1, attempt: 1 },
      { key: (seen[0] as { key: string }).key, fence: 2, attempt: 1 },
    ])
    expect(telemetry.counted('reserve.after_expiry')).toBe(1)
  })
})

it('never retries behind the caller’s back: one request runs at most once', async () => {
  let runs = 0
  const failing = guarded('rerun', { onInProgress: 'wait' }).run(runRequest('k'), () => {
    runs += 1
    throw new Error('x')
  })
  await expect(failing).rejects.toThrow('x')
  expect(runs).toBe(1)
})
