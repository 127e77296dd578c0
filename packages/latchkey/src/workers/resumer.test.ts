import { expect, it } from 'vitest'
import { fakeClock } from '../../test/engine/fake-clock.ts'
import { eventually, gate, recordingTelemetry } from '../../test/engine/fixture.ts'
import { engine } from '../engine/internal.ts'
import type { Resumed } from '../engine/operation.ts'
import type { Resumable } from '../ports/store.ts'
import { resumer } from './resumer.ts'

function scene({ concurrency = 2, resume = async (): Promise<Resumed> => 'completed' } = {}) {
  const clock = fakeClock()
  const telemetry = recordingTelemetry()
  const closing = new AbortController()
  const waiting: Resumable[] = []
  const resumed: string[] = []
  const limits: number[] = []
  const operation = {
    name: 'pay',
    async resume({ identity }: Resumable) {
      resumed.push(identity.id)
      const end = await resume()
      if (end === 'completed') take(identity.id)
      return end
    },
  }
  const take = (id: string) => {
    const at = waiting.findIndex(row => row.identity.id === id)
    if (at >= 0) waiting.splice(at, 1)
  }
  const ended: string[] = []
  const worker = resumer({
    overdue: {
      async resume({ identity }) {
        ended.push(identity.id)
        take(identity.id)
        return 'completed'
      },
    },
    store: {
      async resumable({ limit }) {
        limits.push(limit)
        return waiting.slice(0, limit)
      },
    },
    phased: new Map([['pay', { [engine]: operation }]]),
    concurrency,
    clock,
    telemetry,
    closing: closing.signal,
  })
  return {
    clock,
    telemetry,
    closing,
    waiting,
    resumed,
    ended,
    limits,
    worker,
    turn: () => worker.turn(new AbortController().signal),
    add(count: number, name = 'pay', { crashes = 0, overdue = false } = {}) {
      for (let n = 0; n < count; n++) {
        const identity = { id: `${name}-${waiting.length}`, scope: 'acme', operation: name }
        waiting.push({ identity, fingerprint: new Uint8Array(), crashes, overdue })
      }
    },
  }
}

it('resumes every row once, and says when nothing is left', async () => {
  const { add, turn, worker, resumed } = scene()
  add(5)
  const turns: string[] = []
  for (let n = 0; n < 4; n++) {
    turns.push(await turn())
    await worker.outstanding()
  }
  expect(turns).toEqual(['more', 'more', 'idle', 'idle'])
  expect(resumed.toSorted()).toEqual(['pay-0', 'pay-1', 'pay-2', 'pay-3', 'pay-4'])
})

it('takes a row whose owners died alone, after the others', async () => {
  const { opened, open } = gate()
  const { add, turn, worker, resumed } = scene({ resume: () => opened.then(() => 'completed' as const) })
  add(1, 'pay', { crashes: 3 })
  add(1)
  await turn()
  // Waits for the end of what runs, and begins nothing beside it.
  const second = turn()
  expect(resumed).toEqual(['pay-1'])
  open()
  await second
  await worker.outstanding()
  await turn()
  add(1)
  await turn()
  await worker.outstanding()
  expect(resumed.slice(0, 2)).toEqual(['pay-1', 'pay-0'])
})

it('works on no more rows at once than it may, and goes on as soon as one has ended', async () => {
  const { opened, open } = gate()
  const { add, turn, worker, resumed, clock } = scene({ resume: () => opened.then(() => 'completed' as const) })
  add(3)
  expect(await turn()).toBe('more')
  expect(resumed).toHaveLength(2)
  const full = turn()
  await new Promise(setImmediate)
  clock.advance(1_000)
  expect(await full).toBe('more')
  expect(resumed).toHaveLength(2)
  const next = turn()
  open()
  expect(await next).toBe('idle')
  await worker.outstanding()
  expect(resumed).toHaveLength(3)
  expect(clock.timers()).toBe(0)
})

it('does not begin a row a second time while it works on it', async () => {
  const { opened, open } = gate()
  const { add, turn, worker, resumed } = scene({ resume: () => opened.then(() => 'completed' as const) })
  add(1)
  expect([await turn(), await turn()]).toEqual(['idle', 'idle'])
  expect(resumed).toHaveLength(1)
  open()
  await worker.outstanding()
})

it.each(['failed', 'not-mine', 'unknown', 'parked'] as const)('lets a row rest that ended as %s', async end => {
  const { add, turn, worker, resumed, clock } = scene({ resume: async () => end })
  add(1)
  for (let n = 0; n < 5; n++) {
    expect(await turn()).toBe('idle')
    await worker.outstanding()
  }
  expect(resumed).toHaveLength(1)
  clock.advance(2_000)
  await turn()
  expect(resumed).toHaveLength(2)
  await worker.outstanding()
})

it('reports a row whose resumption throws, and goes on with the others', async () => {
  let tries = 0
  const { add, turn, worker, resumed, telemetry } = scene({
    concurrency: 1,
    resume: async () => {
      tries += 1
      if (tries === 1) throw new Error('broken')
      return 'completed'
    },
  })
  add(2)
  await turn()
  await worker.outstanding()
  await turn()
  await worker.outstanding()
  expect(new Set(resumed).size).toBe(2)
  expect(telemetry.told).toMatchObject([['a row could not be resumed', { error: { message: 'broken' } }]])
})

it('leaves rows of operations that are not declared here alone, and says so once', async () => {
  const { add, turn, resumed, telemetry } = scene()
  add(3, 'exports')
  expect([await turn(), await turn()]).toEqual(['idle', 'idle'])
  expect(resumed).toEqual([])
  expect(telemetry.told).toEqual([
    ['rows are not resumed here: their operation is not declared in this process', { operation: 'exports' }],
  ])
})

it('ends rows of an operation that is not declared here when their deadline has passed', async () => {
  const { add, turn, worker, resumed, ended, waiting } = scene()
  add(1, 'exports')
  add(1, 'exports', { overdue: true })
  add(1, 'pay', { overdue: true })
  await turn()
  await worker.outstanding()
  expect([ended, resumed]).toEqual([['exports-1'], ['pay-2']])
  expect(waiting.map(({ identity }) => identity.id)).toEqual(['exports-0'])
})

it('finds its own rows behind many that are not', async () => {
  const { add, turn, worker, resumed, limits } = scene()
  add(300, 'exports')
  add(1)
  for (let n = 0; n < 12 && resumed.length === 0; n++) await turn()
  await worker.outstanding()
  expect(resumed).toEqual(['pay-300'])
  expect(Math.max(...limits)).toBeLessThanOrEqual(1_000)
})

it('gives back the slot of a definition that hangs for longer than the maximum hold', async () => {
  const { add, turn, worker, clock, telemetry } = scene({ concurrency: 1, resume: () => new Promise(() => {}) })
  add(1)
  await turn()
  let ended = false
  void worker.outstanding().then(() => (ended = true))
  clock.advance(899_000)
  await new Promise(setImmediate)
  expect(ended).toBe(false)
  clock.advance(1_001)
  await eventually(() => ended)
  expect(telemetry.told).toHaveLength(1)
})

it('begins nothing once the Latchkey is closing', async () => {
  const { add, turn, resumed, closing } = scene()
  add(3)
  closing.abort()
  expect(await turn()).toBe('idle')
  expect(resumed).toEqual([])
})
