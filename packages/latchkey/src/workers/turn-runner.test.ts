import { expect, it } from 'vitest'
import { silentTelemetry } from '../ports/telemetry.ts'
import { fakeClock } from '../../test/engine/fake-clock.ts'
import type { TurnResult } from './loop.ts'
import { turnRunner } from './turn-runner.ts'

/** Every message of a loop begins with its name, so what reads the name builds a message. */
function bench(turn: () => Promise<TurnResult>) {
  let built = 0
  const name = {
    toString() {
      built += 1
      return 'sweeper'
    },
  }
  const clock = fakeClock()
  // It is only ever put into texts.
  const turns = turnRunner({
    name: name as unknown as string,
    turn,
    turnMsMax: 1_000,
    idleMs: 1_000,
    clock,
    telemetry: silentTelemetry,
  })
  return { turns, clock, built: () => built }
}

it('builds no error for a turn that ends in time', async () => {
  const { turns, clock, built } = bench(async () => 'idle')
  expect(await turns.next(() => false)).toBe('idle')
  await new Promise(setImmediate)
  expect(built()).toBe(0)
  expect(clock.timers()).toBe(0)
})

it('fails a turn that takes too long, with an error that names the loop and the limit', async () => {
  const { turns, clock } = bench(() => new Promise(() => {}))
  const next = turns.next(() => false)
  await new Promise(setImmediate)
  clock.advance(1_000)
  expect(await next).toBe('failed')
  expect(String(turns.counts().lastError)).toContain('sweeper: no end of the turn within 1000 ms')
})

it('ends the wait for a turn that is given up', async () => {
  const { turns } = bench(() => new Promise(() => {}))
  const next = turns.next(() => true)
  await new Promise(setImmediate)
  turns.giveUp()
  expect(await next).toBe('idle')
})
