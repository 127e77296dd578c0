import { describe, expect, it } from 'vitest'
import { LatchkeyError } from '../../src/ports/errors.ts'
import type { Attempt } from '../../src/engine/answer.ts'
import { engine } from '../../src/engine/internal.ts'
import { answered, eventually, executeRequest, faultyStore, gate, latchkeyOn, operationName } from './fixture.ts'
import { recordingTelemetry, rejects, told } from './fixture.ts'

function opened() {
  const faulty = faultyStore()
  const telemetry = recordingTelemetry()
  const latchkey = latchkeyOn(faulty.store, { telemetry })
  const operation = latchkey.guarded(operationName, { onFailure: 'hold', onStoreDown: 'run-unprotected' })
  const held = gate()
  let runs = 0
  const work = async (): Promise<Attempt> => {
    runs += 1
    await held.opened
    return answered(201)
  }
  const ask = (key: string) => operation[engine].execute(executeRequest(key), work).then(told)
  return { faulty, telemetry, ask, held, runs: () => runs }
}

describe('an operation that runs without its store', () => {
  it('runs at most one handler of a key at a time, and the others hear that it runs', async () => {
    const { faulty, telemetry, ask, held, runs } = opened()
    for (const method of ['claim', 'read', 'releaseMany'] as const) faulty.break(method, rejects)
    const calls = Array.from({ length: 50 }, () => ask('k'))
    const other = ask('another')
    await eventually(() => runs() >= 2)
    const refused: string[] = []
    for (const again of [ask('k'), ask('k')]) void again.then(line => refused.push(line))
    await eventually(() => refused.length === 2 || runs() > 2)
    held.open()
    expect(await other).toBe('executed 201 unprotected')
    const lines = await Promise.all(calls)
    expect(lines.filter(line => line === 'executed 201 unprotected')).toHaveLength(1)
    expect(lines.filter(line => line === 'refused in-progress')).toHaveLength(49)
    expect(refused).toEqual(['refused in-progress', 'refused in-progress'])
    expect(telemetry.counted('unprotected')).toBe(2)
  })

  it('runs no second handler beside one that began with the store, or without it', async () => {
    const { faulty, ask, held, runs } = opened()
    const first = ask('k')
    await expect.poll(runs).toBe(1)
    for (const method of ['claim', 'read', 'releaseMany'] as const) faulty.break(method, rejects)
    expect(await ask('k')).toBe('refused in-progress')
    const unprotected = ask('l')
    await expect.poll(runs, { timeout: 30_000 }).toBe(2)
    faulty.mend()
    // The store is back, and grants the key: nothing of it runs, and the grant is given back.
    await expect.poll(() => ask('l'), { timeout: 30_000 }).toBe('refused in-progress')
    held.open()
    expect(await Promise.all([first, unprotected])).toEqual(['executed 201 yes', 'executed 201 unprotected'])
    expect(runs()).toBe(2)
    expect(await ask('l')).toBe('executed 201 yes')
  })

  it('takes load for no outage: nothing runs, nothing is undone, nothing counts against the store', async () => {
    const { faulty, telemetry, ask, held, runs } = opened()
    held.open()
    faulty.break('claim', async () => {
      throw new LatchkeyError('overloaded', 'too many calls wait')
    })
    for (let times = 0; times < 20; times += 1) expect(await ask('k')).toBe('refused overloaded')
    expect([runs(), faulty.calls.read, faulty.calls.releaseMany]).toEqual([0, 0, 0])
    expect([telemetry.counted('store.error'), telemetry.counted('unprotected')]).toEqual([0, 0])
    faulty.mend()
    expect(faulty.calls.claim).toBe(20)
  })

  it('looks for no claim that was never sent', async () => {
    const { faulty } = opened()
    const latchkey = latchkeyOn(faulty.store)
    const operation = latchkey.guarded(operationName, { onFailure: 'hold' })
    faulty.break('claim', async () => {
      throw new LatchkeyError('store-unavailable', 'no connection', { sent: false })
    })
    const answer = await operation[engine].execute(executeRequest('k'), async () => answered(201))
    expect(told(answer)).toBe('refused store-unavailable')
    await latchkey.close()
    expect([faulty.calls.read, faulty.calls.releaseMany]).toEqual([0, 0])
  })
})
