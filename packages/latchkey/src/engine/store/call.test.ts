import { describe, expect, it } from 'vitest'
import { countingClock, fakeClock } from '../../../test/engine/fake-clock.ts'
import { systemClock } from '../../ports/clock.ts'
import { LatchkeyError } from '../../ports/errors.ts'
import { silentTelemetry } from '../../ports/telemetry.ts'
import { circuitBreaker, storeCalls, within } from './call.ts'

const hang = () => new Promise<never>(() => {})

describe('within', () => {
  it('gives the value and leaves no timer', async () => {
    const clock = countingClock()
    expect(await within(clock, 1_000, async () => 'value')).toBe('value')
    await new Promise(setImmediate)
    expect(clock.live()).toBe(0)
  })

  it('rejects after the limit when no answer comes', async () => {
    const clock = fakeClock()
    const call = within(clock, 2_000, hang)
    clock.advance(2_000)
    await expect(call).rejects.toMatchObject({ code: 'store-unavailable', message: 'no answer within 2000 ms' })
  })

  it('gives the failure as it is, also one that was thrown before a promise existed', async () => {
    const clock = countingClock()
    const broken = new Error('broken')
    const throwing = (): Promise<never> => {
      throw broken
    }
    await expect(within(clock, 1_000, throwing)).rejects.toBe(broken)
    await expect(within(clock, 1_000, () => Promise.reject(broken))).rejects.toBe(broken)
    await new Promise(setImmediate)
    expect(clock.live()).toBe(0)
  })
})

describe('a store call', () => {
  function calls() {
    const counted: string[] = []
    const observed: string[] = []
    const telemetry = {
      ...silentTelemetry,
      observe: (metric: string, value: number, { detail }: { detail?: string }) =>
        void observed.push(`${metric} ${value} ${detail}`),
      count: (metric: string, { detail }: { detail?: string }) => void counted.push(`${metric} ${detail}`),
    }
    return { counted, observed, ...storeCalls({ storeName: 'memory', timeoutMs: 50, clock: systemClock, telemetry }) }
  }

  it('turns a failure into store-unavailable with its cause, and counts it', async () => {
    const { call, counted } = calls()
    const cause = new Error('connection terminated')
    await expect(call('claim', () => Promise.reject(cause))).rejects.toMatchObject({ code: 'store-unavailable', cause })
    expect(counted).toEqual(['store.error claim'])
  })

  it('bounds a store that never answers, by its own limit where one is given', async () => {
    const { call } = calls()
    await expect(call('claim', hang)).rejects.toThrow('no answer within 50 ms')
    await expect(call('claim', hang, 20)).rejects.toThrow('no answer within 20 ms')
  })

  it('opens the circuit after five failures and closes it with a success', async () => {
    const { call, circuit } = calls()
    for (let failures = 0; failures < 5; failures++)
      await call('read', () => Promise.reject(new Error('down'))).catch(() => {})
    expect(circuit.admits()).toBe(false)
    await call('heartbeat', async () => 'written')
    expect(circuit.admits()).toBe(true)
  })

  it('observes the circuit when it changes, and not with every failure', async () => {
    const { call, observed } = calls()
    const fail = () => call('read', () => Promise.reject(new Error('down'))).catch(() => {})
    for (let failures = 0; failures < 4; failures++) await fail()
    expect(observed).toEqual(['circuit.open 0 memory'])
    for (let failures = 0; failures < 4; failures++) await fail()
    expect(observed).toEqual(['circuit.open 0 memory', 'circuit.open 1 memory'])
    for (let successes = 0; successes < 3; successes++) await call('read', async () => 'found')
    expect(observed).toEqual(['circuit.open 0 memory', 'circuit.open 1 memory', 'circuit.open 0 memory'])
  })

  it('passes on what the store says about itself, without blaming the connection', async () => {
    const { call, circuit, counted } = calls()
    const old = new LatchkeyError('store-not-migrated', 'run migrate()')
    for (let failures = 0; failures < 6; failures++)
      await expect(call('claim', () => Promise.reject(old))).rejects.toBe(old)
    expect(circuit.admits()).toBe(true)
    expect(counted).toEqual([])
  })
})

function openCircuit() {
  const clock = fakeClock()
  const breaker = circuitBreaker(clock)
  for (let failures = 0; failures < 5; failures++) breaker.failed()
  return { clock, breaker }
}

it('stays closed for four failures in a row and opens at the fifth', () => {
  const breaker = circuitBreaker(fakeClock())
  for (let failures = 0; failures < 4; failures++) breaker.failed()
  expect(breaker.admits()).toBe(true)
  breaker.failed()
  expect(breaker.admits()).toBe(false)
})

it('counts the calls of a lost batch, which fail with one error, as one failure', () => {
  const breaker = circuitBreaker(fakeClock())
  const lostBatches = Array.from({ length: 5 }, (_, at) => new Error(`connection ${at} is lost`))
  for (const lost of lostBatches.slice(0, 4)) for (let member = 0; member < 30; member++) breaker.failed(lost)
  expect(breaker.admits()).toBe(true)
  breaker.failed(lostBatches[4])
  expect(breaker.admits()).toBe(false)
})

it('counts only failures in a row', () => {
  const breaker = circuitBreaker(fakeClock())
  for (let failures = 0; failures < 40; failures++) {
    breaker.failed()
    if (failures % 4 === 3) breaker.succeeded()
  }
  expect(breaker.admits()).toBe(true)
})

it('admits one probe a second while open', () => {
  const { clock, breaker } = openCircuit()
  clock.advance(999)
  expect(breaker.admits()).toBe(false)
  clock.advance(1)
  expect(breaker.admits()).toBe(true)
  expect(breaker.admits()).toBe(false)
  clock.advance(1_000)
  expect(breaker.admits()).toBe(true)
})

it('stays open after a failed probe, for another second', () => {
  const { clock, breaker } = openCircuit()
  clock.advance(1_000)
  expect(breaker.admits()).toBe(true)
  breaker.failed()
  clock.advance(999)
  expect(breaker.admits()).toBe(false)
})

it('closes after a probe that succeeded', () => {
  const { clock, breaker } = openCircuit()
  clock.advance(1_000)
  expect(breaker.admits()).toBe(true)
  breaker.succeeded()
  expect([breaker.admits(), breaker.admits(), breaker.admits()]).toEqual([true, true, true])
})
