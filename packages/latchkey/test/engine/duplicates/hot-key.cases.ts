/** One key asked for by thousands at once on a healthy store, beside callers who have nothing to do with it. */
import { expect, it } from 'vitest'
import type { Answer, Attempt, ExecuteRequest } from '../../../src/engine/answer.ts'
import { fingerprintInput } from '../../../src/engine/fingerprint/fingerprint.ts'
import { identify } from '../../../src/engine/request.ts'
import { engine } from '../../../src/engine/internal.ts'
import type { Store } from '../../../src/ports/store.ts'
import {
  answered,
  eventually,
  executeRequest,
  gate,
  latchkeyOn,
  operationName,
  recordingTelemetry,
  told,
} from '../fixture.ts'

const crowd = 3_000
const innocents = 300
/** A crowd of thousands takes its time on a small machine; nothing here is measured. */
export const patienceMs = 120_000
const unhurried = { storeTimeoutMs: patienceMs } as const

function ofTenant(index: number): ExecuteRequest {
  const identity = identify({ scope: `tenant-${index}`, operation: operationName, key: 'k' })
  return { ...executeRequest('k'), identity }
}

function tally(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const answer of answers) counts[told(answer)] = (counts[told(answer)] ?? 0) + 1
  return counts
}

const expectedOfAtomic = new Set(['executed 201 yes', 'replayed 201', 'refused in-progress'])

interface Scene {
  readonly key: string
  readonly options?: { readonly onStoreDown?: 'run-unprotected' }
}

export function hotKeyCases(open: () => Store): void {
  crowdCases(open)
  strangerCases(open)
  replayCases(open)
  kindCases(open)
}

async function flood(store: Store, { key, options = {} }: Scene) {
  const telemetry = recordingTelemetry()
  const latchkey = latchkeyOn(store, { telemetry, ...unhurried })
  const operation = latchkey.guarded(operationName, { onFailure: 'hold', ...options })
  const held = gate()
  let runs = 0
  const work = async (): Promise<Attempt> => {
    runs += 1
    await held.opened
    return answered(201)
  }
  const hot = Array.from({ length: crowd }, () => operation[engine].execute(executeRequest(key), work))
  const beside = Array.from({ length: innocents }, (_, index) =>
    operation[engine].execute({ ...ofTenant(index), key }, async () => answered(201)),
  )
  const served = await Promise.all(beside)
  const first = hot.map(answer => answer.then(told))
  // All but one are answered while the handler runs.
  const losers: string[] = []
  for (const each of first) void each.then(line => losers.push(line))
  await eventually(() => losers.length >= crowd - 1 || runs > 1, patienceMs)
  held.open()
  const answers = await Promise.all(hot)
  await latchkey.close()
  return { answers, served, telemetry, runs: () => runs }
}

function crowdCases(open: () => Store): void {
  it(
    'runs once, tells the others that it runs, and serves everybody else',
    async () => {
      const { answers, served, telemetry, runs } = await flood(open(), { key: 'hot' })
      expect(runs()).toBe(1)
      expect(tally(answers)).toEqual({ 'executed 201 yes': 1, 'refused in-progress': crowd - 1 })
      expect(tally(served)).toEqual({ 'executed 201 yes': innocents })
      expect(telemetry.counted('store.error')).toBe(0)
      expect(telemetry.counted('reserve.created')).toBe(1 + innocents)
      expect(telemetry.counted('reserve.in_progress')).toBe(crowd - 1)
    },
    patienceMs,
  )

  it(
    'is not taken for an outage by an operation that runs without its store',
    async () => {
      const { answers, telemetry, runs } = await flood(open(), {
        key: 'unprotected',
        options: { onStoreDown: 'run-unprotected' },
      })
      expect(runs()).toBe(1)
      expect(telemetry.counted('unprotected')).toBe(0)
      expect(tally(answers)).toEqual({ 'executed 201 yes': 1, 'refused in-progress': crowd - 1 })
    },
    patienceMs,
  )
}

function strangerCases(open: () => Store): void {
  it(
    'compares the fingerprint of each caller, and asks for each whether it may be told',
    async () => {
      const latchkey = latchkeyOn(open(), unhurried)
      const operation = latchkey.guarded(operationName, { onFailure: 'hold' })
      const held = gate()
      let asked = 0
      let owner = -1
      const calls = Array.from({ length: 200 }, (_, index) =>
        operation[engine].execute(
          {
            ...executeRequest('mixed'),
            fingerprint: fingerprintInput({ amount: index % 2 }),
            authorizeReplay: async () => {
              asked += 1
              return index % 10 !== 3
            },
          },
          async () => {
            owner = index
            await held.opened
            return answered(201)
          },
        ),
      )
      const lines = Promise.all(calls.map(async call => told(await call)))
      await Promise.race([lines, expect.poll(() => asked, { timeout: patienceMs }).toBe(199)])
      held.open()
      const expected = calls.map((_, index) => {
        if (index === owner) return 'executed 201 yes'
        if (index % 10 === 3) return 'refused replay-not-authorized'
        return index % 2 === owner % 2 ? 'refused in-progress' : 'refused key-reused'
      })
      expect(await lines).toEqual(expected)
      await latchkey.close()
    },
    patienceMs,
  )
}

function replayCases(open: () => Store): void {
  it(
    'replays a finished key to all who ask for it at once',
    async () => {
      const telemetry = recordingTelemetry()
      const latchkey = latchkeyOn(open(), { telemetry, ...unhurried })
      const operation = latchkey.guarded(operationName, { onFailure: 'hold' })
      const work = async () => answered(201, 'x'.repeat(5_000))
      expect(told(await operation[engine].execute(executeRequest('done'), work))).toBe('executed 201 yes')
      const again = Array.from({ length: crowd }, () => operation[engine].execute(executeRequest('done'), work))
      expect(tally(await Promise.all(again))).toEqual({ 'replayed 201': crowd })
      expect(telemetry.counted('store.error')).toBe(0)
      await latchkey.close()
    },
    patienceMs,
  )
}

function kindCases(open: () => Store): void {
  it(
    'runs atomic work once',
    async () => {
      const telemetry = recordingTelemetry()
      const latchkey = latchkeyOn(open(), { telemetry, ...unhurried })
      const operation = latchkey.atomic('hot.atomic')
      let runs = 0
      const work = async () => {
        runs += 1
        return answered(201)
      }
      const request = executeRequest('atomic')
      const answers = await Promise.all(Array.from({ length: crowd }, () => operation[engine].execute(request, work)))
      const counts = tally(answers)
      expect(runs).toBe(1)
      expect(Object.keys(counts).filter(line => !expectedOfAtomic.has(line))).toEqual([])
      expect(counts['executed 201 yes']).toBe(1)
      expect(telemetry.counted('store.error')).toBe(0)
      await latchkey.close()
    },
    patienceMs,
  )

  it(
    'runs phased and deferred work once',
    async () => {
      const telemetry = recordingTelemetry()
      const latchkey = latchkeyOn(open(), { telemetry, ...unhurried })
      let runs = 0
      const outcome = { status: 201, headers: [], body: Buffer.from('{}'), version: 0 }
      const phased = latchkey.phased('hot.phased', { version: 1 }, async () => {
        runs += 1
        return outcome
      })
      const deferred = latchkey.deferred('hot.deferred', { version: 1, deadlineMs: 60_000 }, async () => outcome)
      const given = { scope: 'acme', key: 'hot', input: { amount: 1 } }
      const ends = await Promise.allSettled(Array.from({ length: crowd }, () => phased.run(given)))
      const codes = new Set(ends.map(end => (end.status === 'fulfilled' ? 'ran' : String(end.reason.code))))
      expect(runs).toBe(1)
      expect([...codes].filter(code => code !== 'ran' && code !== 'in-progress')).toEqual([])
      const queued = await Promise.allSettled(Array.from({ length: crowd }, () => deferred.run(given)))
      expect(new Set(queued.map(end => (end.status === 'fulfilled' ? end.value.kind : end.reason)))).toEqual(
        new Set(['accepted']),
      )
      expect(telemetry.counted('store.error')).toBe(0)
      await latchkey.close()
    },
    patienceMs,
  )
}
