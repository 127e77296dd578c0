import { afterEach, describe, expect, it } from 'vitest'
import { createLatchkey, json, outcomeUnknown, singleTenant } from 'latchkey'
import { createReconciler, type OutcomeVerdict, standardWebhooks } from 'latchkey/reconcile'
import { memoryStore } from 'latchkey/stores/memory'
import { createWorkers, type Workers } from 'latchkey/workers'
import { eventually, recordingTelemetry } from '../engine/fixture.ts'
import { secret, signedWebhook } from './fixture.ts'

const running: Workers[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map(workers => workers.stop()))
})

async function newScene() {
  const telemetry = recordingTelemetry()
  const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant, telemetry })
  const pay = latchkey.guarded('payments.create', { onFailure: 'hold', outcomeVersion: 3 })
  const reconcile = createReconciler(latchkey)
  const request = { scope: 'acme', key: 'k', input: 1 }
  const keys: string[] = []
  await pay
    .run(request, ({ downstreamKey }) => {
      keys.push(downstreamKey('charge'))
      throw outcomeUnknown('socket hang up')
    })
    .catch(() => undefined)
  const id = latchkey.identify({ scope: 'acme', operation: 'payments.create', key: 'k' })
  const work = (given: { concurrency?: number } = {}) => {
    const options = { reconciler: { use: reconcile, everyMs: 20, ...given }, only: ['reconciler'] } as const
    const workers = createWorkers(latchkey, options)
    running.push(workers)
    workers.start()
    return workers
  }
  return { telemetry, latchkey, pay, reconcile, request, keys, id, work }
}

describe('guarded work that is unknown', () => {
  it("is completed with the outcome of a look-up, in the operation's own outcome version", async () => {
    const { latchkey, pay, reconcile, request, keys, id, work } = await newScene()
    const asked: string[] = []
    reconcile.register(pay, {
      backoffMs: [20],
      lookup: ({ downstreamKey }): OutcomeVerdict => {
        asked.push(downstreamKey('charge'))
        return { kind: 'happened', outcome: json(200, { charge: 'ch_1' }) }
      },
    })
    work()
    await eventually(async () => (await latchkey.inspect({ id })).record?.state === 'completed')
    expect(asked).toEqual(keys)
    expect((await latchkey.inspect({ id })).record?.outcome).toMatchObject({ status: 200, version: 3 })
    expect(await pay.run(request, () => 'again')).toEqual({ charge: 'ch_1' })
  })

  it('may run again after "never happened", and a message that says otherwise is said aloud', async () => {
    const { telemetry, latchkey, pay, reconcile, request, id, work } = await newScene()
    reconcile.register(pay, { quarantineMs: 1, backoffMs: [20], lookup: () => ({ kind: 'never-happened' }) })
    const hook = reconcile.webhook<{ id: string }>({
      name: 'provider',
      verify: standardWebhooks({ secrets: [secret] }),
      evidence: event => ({ id: event.id, verdict: { kind: 'happened', outcome: json(201, {}) } }),
    })
    work()
    await eventually(async () => (await latchkey.inspect({ id })).record?.state === 'failed_retryable')
    expect((await hook(signedWebhook({ id }))).status).toBe(200)
    expect(telemetry.told).toContainEqual([
      expect.stringContaining('it may have happened twice'),
      { operation: 'payments.create', identity: id, detail: 'contradiction' },
    ])
    expect(await pay.run(request, () => 'again')).toBe('again')
  })

  it('is not settled by the value of an effect, and says why', async () => {
    const { telemetry, latchkey, reconcile, id } = await newScene()
    const hook = reconcile.webhook({
      name: 'provider',
      verify: standardWebhooks({ secrets: [secret] }),
      evidence: () => ({ id, verdict: { kind: 'happened', value: { charge: 'ch_1' } } }),
    })
    expect((await hook(signedWebhook({}))).status).toBe(200)
    expect((await latchkey.inspect({ id })).record?.state).toBe('unknown')
    expect(telemetry.told).toContainEqual([
      'webhook gave an effect value, which does not fit the row: it is stored and settles nothing',
      { operation: 'payments.create', identity: id, detail: 'happened' },
    ])
  })

  it('is asked about by several processes one at a time, and by none after its workers were stopped', async () => {
    const { pay, reconcile, work } = await newScene()
    let open = 0
    let aborted = 0
    reconcile.register(pay, {
      backoffMs: [20, 20],
      lookup: ({ signal }) =>
        new Promise((_, reject) => {
          open += 1
          signal.addEventListener('abort', () => {
            aborted += 1
            reject(signal.reason)
          })
        }),
    })
    const [one, other] = [work(), work()]
    await eventually(() => open === 1)
    await eventually(() => [one, other].every(workers => (workers.health().reconciler?.turns ?? 0) > 3))
    expect(open).toBe(1)
    expect(await one.drain({ timeoutMs: 50 })).toEqual(expect.anything())
    await other.stop()
    await one.stop()
    await eventually(() => aborted === 1)
  })

  it('leaves room for other providers while one hangs', async () => {
    const { latchkey, pay, reconcile, work, id } = await newScene()
    const slow = latchkey.guarded('refunds.create', { onFailure: 'hold' })
    for (const key of ['a', 'b', 'c']) {
      const request = { scope: 'acme', key, input: 1 }
      await slow.run(request, () => Promise.reject(outcomeUnknown())).catch(() => undefined)
    }
    let open = 0
    reconcile.register(slow, { backoffMs: [1], lookup: () => new Promise<never>(() => void (open += 1)) })
    const outcome = json(201, {})
    reconcile.register(pay, { backoffMs: [500], lookup: () => ({ kind: 'happened', outcome }) })
    work({ concurrency: 2 })
    await eventually(async () => (await latchkey.inspect({ id })).record?.state === 'completed')
    expect(open).toBe(1)
  })
})
