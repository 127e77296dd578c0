/** Phased and deferred work on a store without transactions: effects only. */
import { beforeEach, describe, expect, it } from 'vitest'
import {
  createLatchkey,
  type EffectsExecution,
  isLatchkeyError,
  json,
  type LatchkeyWithoutTransactions,
  type Outcome,
  type PhasedExecution,
} from 'latchkey'
import { createWorkers } from 'latchkey/workers'
import { engine } from '../../src/engine/internal.ts'
import { eventually, recordingTelemetry } from '../engine/fixture.ts'
import { memoryHarness, type MemoryHarness, withoutTransactions } from '../memory/fixture.ts'

const act = { by: 'a test', reason: 'the provider was asked' } as const
const once = { timeoutMs: 1_000 } as const
const row = { scope: 'acme', operation: 'payments.create', key: 'k' } as const
const request = { scope: 'acme', key: 'k', input: { amount: 7 } } as const
interface Pay {
  readonly amount: number
}

let harness: MemoryHarness
let telemetry: ReturnType<typeof recordingTelemetry>
let latchkey: LatchkeyWithoutTransactions<unknown>
let calls: string[]

beforeEach(async () => {
  harness = await memoryHarness()
  telemetry = recordingTelemetry()
  calls = []
  latchkey = createLatchkey({ store: withoutTransactions(harness.store), scope: () => 'acme', telemetry })
})

async function call(x: EffectsExecution, name: string, fault?: Error): Promise<string> {
  return x.effect(name, once, async () => {
    calls.push(name)
    if (fault !== undefined) throw fault
    return `${name} done`
  })
}

/** As plain JavaScript, which has no types, writes it. */
function untyped(execution: EffectsExecution): PhasedExecution<unknown> {
  return execution as PhasedExecution<unknown>
}

function pay(work: (x: EffectsExecution, input: Pay) => Promise<Outcome>) {
  return latchkey.phased<Pay>('payments.create', { version: 1, steps: 'effects' }, work)
}

describe('phased work of effects only', () => {
  it('calls each effect once, records its value, and replays the outcome', async () => {
    const operation = pay(async (x, { amount }) => {
      const charge = await call(x, 'charge')
      return json(201, { amount, charge, mail: await call(x, 'mail') })
    })
    const first = await operation.run(request)
    expect(first).toMatchObject({ status: 201, value: { amount: 7, charge: 'charge done', mail: 'mail done' } })
    expect(await operation.run(request)).toEqual(first)
    expect(calls).toEqual(['charge', 'mail'])
    const { steps } = await latchkey.inspect(row)
    expect(steps).toMatchObject([
      { position: 0, name: 'charge', kind: 'effect', state: 'done', value: '"charge done"' },
      { position: 1, name: 'mail', kind: 'effect', state: 'done' },
    ])
  })

  it('resumes after its last recorded effect, with its first input', async () => {
    let broken = true
    const operation = pay(async (x, { amount }) => {
      await call(x, 'charge')
      if (broken) throw new Error('out of paper')
      return json(201, { amount })
    })
    await expect(operation.run(request)).rejects.toThrow('out of paper')
    broken = false
    await harness.advance(2_000)
    const [found] = await harness.store.resumable({ limit: 10 })
    expect(found && (await operation[engine].resume(found))).toBe('completed')
    expect(await operation.run(request)).toMatchObject({ status: 201, value: { amount: 7 } })
    expect(calls).toEqual(['charge'])
  })

  it('holds an effect in doubt, and resumes with the value that a person gives', async () => {
    let fault: Error | undefined = new Error('socket hang up')
    const operation = pay(async x => json(201, { charge: await call(x, 'charge', fault) }))
    await expect(operation.run(request)).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
    fault = undefined
    expect((await latchkey.inspect(row)).record?.state).toBe('unknown')
    const verdict = { kind: 'happened', value: 'ch_1' } as const
    expect(await latchkey.settle(row, verdict, act)).toEqual({ kind: 'settled' })
    expect(await operation.run(request)).toMatchObject({ value: { charge: 'ch_1' } })
    expect(calls).toEqual(['charge'])
  })

  it.each(['phase', 'outbox'] as const)(
    'parks a row whose definition calls %s all the same, with what was recorded, and resumes a corrected one',
    async called => {
      let corrected = false
      const operation = pay(async x => {
        await call(x, 'charge')
        if (corrected) return json(201, {})
        // A definition that catches everything is stopped as well.
        const { phase, outbox } = untyped(x)
        const misuse = called === 'phase' ? phase('record', () => 1) : outbox.append({}, { topic: 't', payload: 1 })
        await Promise.resolve(misuse).catch(() => undefined)
        return json(500, {})
      })
      const parked = (error: unknown) => isLatchkeyError(error, 'parked')
      await expect(operation.run(request)).rejects.toSatisfy(parked)
      const { record, steps } = await latchkey.inspect(row)
      expect(record).toMatchObject({ parked: true, state: 'failed_retryable', lastErrorCode: `${called}-not-declared` })
      expect(steps).toMatchObject([{ name: 'charge', state: 'done', value: '"charge done"' }])
      expect(JSON.stringify(telemetry.told)).toContain(
        `payments.create is declared with steps: 'effects', and its definition calls ${called}`,
      )
      await expect(operation.run(request)).rejects.toSatisfy(parked)
      corrected = true
      await latchkey.unpark(row, act)
      expect(await operation.run(request)).toMatchObject({ status: 201 })
      expect(calls).toEqual(['charge'])
    },
  )

  it('reports a value that came too late, where the store has no place for evidence', async () => {
    const store = { ...withoutTransactions(harness.store), reconciliation: undefined, ledgers: undefined }
    const lacking = createLatchkey({ store, scope: () => 'acme', telemetry })
    const operation = lacking.phased('payments.create', { version: 1, steps: 'effects' }, async x => {
      const slow = async () => {
        await harness.advance(3_600_000)
        expect(await harness.store.sweep({ limit: 10 })).toHaveLength(1)
        return 'ch_1'
      }
      return json(201, { charge: await x.effect('charge', once, slow) })
    })
    await expect(operation.run(request)).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
    expect((await lacking.inspect(row)).record?.state).toBe('unknown')
    expect(JSON.stringify(telemetry.told)).toContain(
      'charge happened, and its run had lost the row: the plain store has no reconciliation',
    )
  })

  it('refuses phases also on a store that has transactions, where it is declared so', async () => {
    const full = createLatchkey({ store: harness.store, scope: () => 'acme', telemetry })
    const operation = full.phased('payments.create', { version: 1, steps: 'effects' }, async x => {
      await untyped(x).phase('record', () => 1)
      return json(201, {})
    })
    await expect(operation.run(request)).rejects.toSatisfy(error => isLatchkeyError(error, 'parked'))
  })
})

it('resumes a row of a version with phases by that version, beside a newer one of effects only', async () => {
  const full = createLatchkey({ store: harness.store, scope: () => 'acme', telemetry })
  let broken = true
  const older = full.phased('payments.create', { version: 1 }, async x => {
    await x.phase('record', () => 1)
    if (broken) throw new Error('out of paper')
    return json(201, { receipt: await x.phase('receipt', () => 2) })
  })
  await expect(older.run(request)).rejects.toThrow('out of paper')
  const newer = full.phased('payments.create', { version: 2, steps: 'effects' }, async () => json(201, {}))
  broken = false
  await harness.advance(2_000)
  const [found] = await harness.store.resumable({ limit: 10 })
  expect(found && (await newer[engine].resume(found))).toBe('completed')
  expect(await newer.run(request)).toMatchObject({ value: { receipt: 2 } })
})

describe('deferred work of effects only', () => {
  it('is stored by the request and run by a worker', async () => {
    const options = { deadlineMs: 60_000, steps: 'effects' } as const
    const report = latchkey.deferred<Pay>('payments.create', options, async (x, { amount }) =>
      json(201, { amount, file: await call(x, 'upload') }),
    )
    expect(await report.run(request)).toMatchObject({ kind: 'accepted' })
    expect(calls).toEqual([])
    const workers = createWorkers(latchkey, { resumer: { everyMs: 5 } })
    workers.start()
    await eventually(async () => (await latchkey.inspect(row)).record?.state === 'completed')
    await workers.stop()
    expect(await report.run(request)).toMatchObject({ kind: 'done', value: { amount: 7, file: 'upload done' } })
    expect(calls).toEqual(['upload'])
  })
})
