import { expect, it } from 'vitest'
import { type FakeClock, fakeClock } from '../../test/engine/fake-clock.ts'
import { gate, recordingTelemetry } from '../../test/engine/fixture.ts'
import { type LoopOptions, type TurnResult, type WorkerLoop, workerLoop } from './loop.ts'

interface Scene {
  readonly clock: FakeClock
  readonly loop: WorkerLoop
  readonly telemetry: ReturnType<typeof recordingTelemetry>
  /** When each turn began, counted from the first. */
  readonly began: () => number[]
  /** Lets time pass in small steps, and promises settle between them. */
  pass(spanMs: number, stepMs?: number): Promise<void>
}

function scene(
  turn: (nth: number, signal: AbortSignal) => TurnResult | Promise<TurnResult>,
  over: Partial<LoopOptions> & { random?: () => number } = {},
): Scene {
  const clock = { ...fakeClock(), ...(over.random === undefined ? {} : { random: over.random }) }
  const telemetry = recordingTelemetry()
  const at: number[] = []
  const loop = workerLoop({
    name: 'tester',
    idleMs: 1_000,
    clock,
    telemetry,
    turn: async signal => {
      at.push(clock.monotonicMs())
      return turn(at.length, signal)
    },
    ...over,
  })
  return {
    clock,
    loop,
    telemetry,
    began: () => at.map(time => time - (at[0] ?? 0)),
    async pass(spanMs, stepMs = 10) {
      for (let passedMs = 0; passedMs <= spanMs; passedMs += stepMs) {
        await settled()
        clock.advance(passedMs + stepMs > spanMs ? spanMs - passedMs : stepMs)
        await settled()
      }
    },
  }
}

const settled = () => new Promise<void>(resolve => setImmediate(resolve))

it('turns at once while there is more, and pauses when there is nothing', async () => {
  const { loop, began, pass } = scene(nth => (nth < 4 ? 'more' : 'idle'), { random: () => 0 })
  loop.start()
  await pass(999)
  expect(began()).toHaveLength(4)
  await pass(200)
  expect(began()).toHaveLength(5)
  await loop.stop()
})

it('pauses between full batches when asked to', async () => {
  const { loop, began, pass } = scene(() => 'more', { pauseMs: 100, random: () => 0 })
  loop.start()
  await pass(350)
  expect(began()).toEqual([0, 100, 200, 300])
  await loop.stop()
})

it.each([
  [0, 1_000],
  [0.5, 900],
  [0.999_999, 800],
])('pauses never longer than idleMs, and shorter by at most the jitter: chance %d', async (random, pauseMs) => {
  const { loop, began, pass } = scene(() => 'idle', { random: () => random })
  loop.start()
  await pass(3_500)
  expect(began()[1]).toBeGreaterThanOrEqual(pauseMs - 1)
  expect(began()[1]).toBeLessThanOrEqual(pauseMs + 10)
  await loop.stop()
})

it('begins its first turn within a second, however long it idles', async () => {
  const { loop, began, pass } = scene(() => 'idle', { idleMs: 60_000, random: () => 0.999 })
  loop.start()
  await pass(900)
  expect(began()).toHaveLength(0)
  await pass(150)
  expect(began()).toHaveLength(1)
  await loop.stop()
})

it('backs off twice as long after each failure, up to a limit, and forgets it after a good turn', async () => {
  const { loop, began, pass, telemetry } = scene(
    nth => {
      if (nth === 8) return 'idle'
      throw new Error(`no ${nth}`)
    },
    { backoff: { firstMs: 100, maxMs: 1_000 }, random: () => 0.999_999 },
  )
  loop.start()
  await pass(7_000)
  await loop.stop()
  const gaps = began().map((time, n) => time - (began()[n - 1] ?? 0))
  const expected = [100, 200, 400, 800, 1_000, 1_000, 1_000]
  for (const [n, gapMs] of expected.entries()) {
    expect(gaps[n + 1]).toBeGreaterThanOrEqual(gapMs - 1)
    expect(gaps[n + 1]).toBeLessThanOrEqual(gapMs + 10)
  }
  // The ninth follows an idle pause; after it the backoff begins anew.
  expect(gaps[9]).toBeLessThanOrEqual(110)
  const about = { detail: 'tester' }
  expect(telemetry.told.slice(0, 3)).toMatchObject([
    ['worker.turn', about],
    ['worker.failure', about],
    ['a turn of the tester failed', { error: { message: 'no 1' } }],
  ])
  expect(telemetry.counted('worker.turn')).toBe(loop.health().turns)
  expect(telemetry.counted('worker.failure')).toBe(loop.health().failures)
})

it('takes away at most half of a backoff by chance', async () => {
  const failing = () => {
    throw new Error('no')
  }
  const { loop, began, pass } = scene(failing, { backoff: { firstMs: 1_000, maxMs: 1_000 }, random: () => 0 })
  loop.start()
  await pass(1_800)
  expect(began()).toEqual([0, 500, 1_000, 1_500])
  await loop.stop()
})

it('tells how it is doing', async () => {
  const { loop, pass, clock } = scene(nth => {
    if (nth === 2) throw new Error('the store is away')
    return 'idle'
  })
  expect(loop.health()).toEqual({
    running: false,
    lastTurnAtMs: undefined,
    lastError: undefined,
    turns: 0,
    failures: 0,
  })
  loop.start()
  await pass(600)
  expect(loop.health()).toMatchObject({ running: true, turns: 1, failures: 0, lastError: undefined })
  await pass(900)
  expect(loop.health()).toMatchObject({ turns: 2, failures: 1, lastError: { message: 'the store is away' } })
  await pass(1_000)
  expect(loop.health()).toMatchObject({ failures: 1, lastError: undefined })
  expect(loop.health().lastTurnAtMs).toBeGreaterThan(clock.nowMs() - 1_000)
  await loop.stop()
  expect(loop.health()).toMatchObject({ running: false, failures: 1 })
})

it('gives up a turn that hangs, tells it so, and goes on', async () => {
  let told: AbortSignal | undefined
  const { loop, began, pass } = scene(
    (nth, signal) => {
      if (nth > 1) return 'idle'
      told = signal
      return new Promise(() => {})
    },
    { turnMsMax: 5_000 },
  )
  loop.start()
  await pass(4_000)
  expect(told?.aborted).toBe(false)
  expect(began()).toHaveLength(1)
  await pass(3_000)
  expect(told?.aborted).toBe(true)
  expect(began().length).toBeGreaterThan(1)
  expect(loop.health()).toMatchObject({ failures: 1 })
  await loop.stop()
})

it('adds no fourth turn to three that hang for good', async () => {
  const { loop, began, pass } = scene(() => new Promise(() => {}), { turnMsMax: 100 })
  loop.start()
  await pass(200_000, 100)
  expect(began()).toHaveLength(3)
  expect(loop.health().failures).toBeGreaterThan(5)
  await loop.stop()
})

it('survives a telemetry that throws', async () => {
  const broken = () => {
    throw new Error('no log')
  }
  const failing = () => {
    throw new Error('no')
  }
  const telemetry = { count: broken, observe: broken, report: broken }
  const { loop, began, pass } = scene(failing, { telemetry })
  loop.start()
  await pass(3_000)
  expect(began().length).toBeGreaterThan(2)
  await loop.stop()
})

it('drains: waits for the running turn and begins no other', async () => {
  const { opened, open } = gate()
  const { loop, began, pass } = scene(() => opened.then(() => 'more'))
  loop.start()
  await pass(600)
  let drained: unknown
  const draining = loop.drain().then(result => (drained = result))
  await pass(1_000)
  expect(drained).toBeUndefined()
  expect(loop.health().running).toBe(true)
  open()
  await draining
  expect(drained).toEqual({ drained: true })
  expect(loop.health().running).toBe(false)
  await pass(5_000)
  expect(began()).toHaveLength(1)
})

it('drains at once out of a pause, before its first turn, and when it never ran', async () => {
  const idle = scene(() => 'idle')
  expect(await idle.loop.drain()).toEqual({ drained: true })
  idle.loop.start()
  expect(await idle.loop.drain()).toEqual({ drained: true })
  expect(idle.began()).toHaveLength(0)
  idle.loop.start()
  await idle.pass(600)
  expect(idle.began()).toHaveLength(1)
  expect(await idle.loop.drain()).toEqual({ drained: true })
  expect(idle.clock.timers()).toBe(0)
})

it('drains out of the short pause in which hints are gathered', async () => {
  const { loop, began, pass } = scene(() => 'idle')
  loop.start()
  await pass(600, 600)
  expect(began()).toHaveLength(1)
  expect(await loop.drain()).toEqual({ drained: true })
})

it('says so when the running turn outlasts the drain, and stop ends the wait', async () => {
  const { loop, pass, clock } = scene(() => new Promise(() => {}))
  loop.start()
  await pass(600)
  const draining = loop.drain({ timeoutMs: 2_000 })
  await pass(2_100)
  expect(await draining).toEqual({ drained: false })
  await loop.stop()
  expect(loop.health()).toMatchObject({ running: false, failures: 0 })
  expect(clock.timers()).toBe(0)
})

it('drains what its turns have started, too', async () => {
  const { opened, open } = gate()
  const { loop, pass } = scene(() => 'idle', { outstanding: () => opened })
  loop.start()
  await pass(600)
  let drained = false
  const draining = loop.drain().then(() => (drained = true))
  await pass(100)
  expect(drained).toBe(false)
  open()
  await draining
})

it('stops as often as it is told to, and starts again', async () => {
  const { loop, began, pass } = scene(() => 'idle')
  await loop.stop()
  loop.start()
  loop.start()
  await pass(600)
  expect(began()).toHaveLength(1)
  await Promise.all([loop.stop(), loop.stop(), loop.drain()])
  await loop.stop()
  await pass(5_000)
  expect(began()).toHaveLength(1)
  loop.start()
  await pass(600)
  expect(began()).toHaveLength(2)
  await loop.stop()
})

it('turns early at a hint, once for many', async () => {
  const { loop, began, pass } = scene(() => 'idle', { idleMs: 60_000 })
  loop.start()
  await pass(600)
  for (let n = 0; n < 100; n++) loop.wake()
  await pass(500)
  expect(began()).toHaveLength(2)
  await loop.stop()
})

it('answers a hint that came during a turn with one more turn', async () => {
  const { opened, open } = gate()
  const { loop, began, pass } = scene(nth => (nth === 1 ? opened.then(() => 'idle' as const) : 'idle'), {
    idleMs: 60_000,
  })
  loop.start()
  await pass(600)
  loop.wake()
  open()
  await pass(500)
  expect(began()).toHaveLength(2)
  await loop.stop()
})

it('keeps a storm of hints to one turn in 20 ms, and its backoff in spite of hints', async () => {
  const calm = scene(() => 'idle', { idleMs: 60_000 })
  calm.loop.start()
  await calm.pass(600)
  for (let n = 0; n < 200; n++) {
    calm.loop.wake()
    await calm.pass(1, 1)
  }
  expect(calm.began().length).toBeGreaterThan(5)
  expect(calm.began().length).toBeLessThan(25)
  await calm.loop.stop()

  const failing = scene(() => Promise.reject(new Error('no')), { backoff: { firstMs: 10_000, maxMs: 10_000 } })
  failing.loop.start()
  await failing.pass(600)
  failing.loop.wake()
  await failing.pass(1_000)
  expect(failing.began()).toHaveLength(1)
  await failing.loop.stop()
})
