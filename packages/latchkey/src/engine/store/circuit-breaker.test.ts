import { expect, it } from 'vitest'
import { fakeClock } from '../../../test/engine/fake-clock.ts'
import { circuit } from './circuit-breaker.ts'

function openCircuit() {
  const clock = fakeClock()
  const breaker = circuit(clock)
  for (let failures = 0; failures < 5; failures++) breaker.failed()
  return { clock, breaker }
}

it('stays closed for four failures in a row and opens at the fifth', () => {
  const breaker = circuit(fakeClock())
  for (let failures = 0; failures < 4; failures++) breaker.failed()
  expect(breaker.admits()).toBe(true)
  breaker.failed()
  expect(breaker.admits()).toBe(false)
})

it('counts the calls of a lost batch, which fail with one error, as one failure', () => {
  const breaker = circuit(fakeClock())
  const lostBatches = Array.from({ length: 5 }, (_, at) => new Error(`connection ${at} is lost`))
  for (const lost of lostBatches.slice(0, 4)) for (let member = 0; member < 30; member++) breaker.failed(lost)
  expect(breaker.admits()).toBe(true)
  breaker.failed(lostBatches[4])
  expect(breaker.admits()).toBe(false)
})

it('counts only failures in a row', () => {
  const breaker = circuit(fakeClock())
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
