import { expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import { createWorkers } from '../../src/workers/index.ts'
import { eventually } from '../engine/fixture.ts'
import { withoutFaculties, withoutTransactions } from '../memory/fixture.ts'
import { scene } from './fixture.ts'

it('runs what the store has work for, and tells the health of each', async () => {
  // Without steps there is no phased work; effects need no transactions.
  expect(Object.keys(scene({ over: withoutFaculties }).workers().health())).toEqual(['sweeper', 'reaper'])
  expect(Object.keys(scene({ over: withoutTransactions }).workers().health())).toEqual(['sweeper', 'resumer', 'reaper'])
  const all = scene().workers()
  expect(Object.keys(all.health())).toEqual(['sweeper', 'resumer', 'reaper'])
  all.start()
  await eventually(() => Object.values(all.health()).every(({ turns }) => turns > 0))
  expect(all.health().sweeper).toMatchObject({ running: true, failures: 0, lastError: undefined })
  expect(await all.drain()).toEqual({ drained: true })
  await all.stop()
  expect(all.health().sweeper).toMatchObject({ running: false })
})

it('runs only what it is told to', () => {
  expect(
    Object.keys(
      scene()
        .workers({ only: ['reaper'] })
        .health(),
    ),
  ).toEqual(['reaper'])
})

it.each([
  [{ sweeper: { everyMs: 0 } }, 'sweeper.everyMs must be a number above 0'],
  [{ reaper: { batch: -1 } }, 'reaper.batch must be a whole number from 1 to 1000000 (got -1)'],
  [{ resumer: { concurrency: Number.NaN } }, 'resumer.concurrency must be a whole number from 1 to 1000000 (got NaN)'],
])('refuses %j at construction', (options, message) => {
  expect(() => scene().workers(options)).toThrow(message)
})

it('refuses the name of a worker that there is not, and one that has nothing to do here', () => {
  const { workers } = scene({ over: withoutFaculties })
  // A name from a configuration file is not checked by the compiler.
  expect(() => workers({ only: ['sweepr' as 'sweeper'] })).toThrow("(got 'sweepr'): did you mean 'sweeper'?")
  expect(() => workers({ only: ['resumer'] })).toThrow('the resumer has nothing to do on a store without steps')
  expect(() => workers({ only: ['relay'] })).toThrow('the relay has nothing to do without relay: { targets }')
  expect(() => workers({ relay: { targets: {} } })).toThrow(
    'createWorkers: relay: the core store has no outbox (traits.faculties)',
  )
})

it('resolves a dead lease within the lease and one sweep, also after the store was away', async () => {
  const { row, clock, store, stateOf, latchkey } = scene()
  const id = await row('k', 'in_progress')
  clock.leap(2_000)
  let failures = 3
  const flaky = {
    [engine]: {
      ...latchkey[engine],
      store: {
        ...store,
        sweep: (options: { limit: number }) =>
          failures-- > 0 ? Promise.reject(new Error('connection terminated')) : store.sweep(options),
      },
    },
  }
  const sweeping = createWorkers(flaky, { only: ['sweeper'], sweeper: { everyMs: 50 } })
  sweeping.start()
  await eventually(async () => (await stateOf(id)) === 'unknown')
  expect(sweeping.health().sweeper).toMatchObject({ failures: 3, lastError: undefined })
  await sweeping.stop()
})

it('takes hints while it runs, and lives without them when they fail', async () => {
  const { workers, telemetry } = scene()
  let wake: (() => void) | undefined
  let ended = 0
  const hinted = workers({
    only: ['sweeper'],
    hint: given => {
      wake = given
      return () => void (ended += 1)
    },
  })
  expect(wake).toBeUndefined()
  hinted.start()
  await eventually(() => hinted.health().sweeper?.turns === 1)
  wake?.()
  await eventually(() => hinted.health().sweeper?.turns === 2)
  await hinted.drain()
  await hinted.stop()
  expect(ended).toBe(1)

  const broken = workers({
    only: ['sweeper'],
    hint: () => {
      throw new Error('no LISTEN through this pooler')
    },
  })
  broken.start()
  await eventually(() => broken.health().sweeper?.turns === 1)
  await broken.stop()
  expect(telemetry.told.filter(one => String(one).includes('hints'))).toMatchObject([
    ['the workers get no hints; polling continues', { error: { message: 'no LISTEN through this pooler' } }],
  ])
})
