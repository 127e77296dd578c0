/** How an unknown payment ends, whichever store keeps it. Run by a test file per store. */
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { json, outcomeUnknown } from 'latchkey'
import { standardWebhooks } from 'latchkey/reconcile'
import { openPlace } from '../processes/database.ts'
import { eventually } from '../engine/fixture.ts'
import { itSettlesByComparing } from './ledgers.cases.ts'
import { expectPaid } from './expect-paid.ts'
import {
  type Charge,
  mountWebhook,
  openStage,
  request,
  secret,
  signedWebhook,
  type Stage,
  verdictOf,
} from './fixture.ts'

const act = { by: 'alex', reason: 'the provider said so on the phone' }
const soon = { everyMs: 20 }

export function itSettlesUnknowns(placeName: () => string): void {
  const open: Stage[] = []
  const stageOf = async () => {
    const stage = await openStage(placeName())
    open.push(stage)
    return stage
  }
  beforeAll(async () => {
    const place = await openPlace(placeName())
    await place.migrate()
    await place.close()
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map(stage => stage.close()))
  })

  describe('by webhook', () => {
    it('settles at once, and the remaining steps go on without waiting for anybody to poll', async () => {
      const stage = await stageOf()
      const hook = mountWebhook(stage)
      await stage.work({ reconciler: { use: stage.reconcile, everyMs: 600_000 } })
      const id = await stage.unknownPayment('hooked')
      const response = await hook(signedWebhook({ charge: stage.provider.charges[0] }, { id: 'msg_hooked' }))
      expect(response.status).toBe(200)
      // Nobody polls for ten minutes, which is longer than this waits.
      await eventually(async () => (await stage.stateOf(id)) === 'completed')
      await expectPaid(stage, 'hooked')
      const { evidence } = await stage.latchkey.inspect({ id })
      expect(evidence).toMatchObject([{ source: 'webhook', verdict: 'happened', effect: 'charge', applied: true }])
      expect(stage.telemetry.counted('reconcile.resolved')).toBe(1)
    })

    it('uses one that came before the response', async () => {
      const stage = await stageOf()
      const hook = mountWebhook(stage)
      const id = await stage.unknownPayment('early', async charge => {
        expect((await hook(signedWebhook({ charge }, { id: 'msg_early' }))).status).toBe(200)
        throw new Error('socket hang up')
      })
      expect((await stage.latchkey.inspect({ id })).evidence).toMatchObject([{ source: 'webhook', applied: false }])
      await stage.work({ reconciler: { use: stage.reconcile, ...soon } })
      await eventually(async () => (await stage.stateOf(id)) === 'completed')
      await expectPaid(stage, 'early')
    })

    it('changes nothing and answers 400 when one is forged, stale or replayed', async () => {
      const stage = await stageOf()
      const hook = mountWebhook(stage)
      const id = await stage.unknownPayment('forged')
      const event = { charge: stage.provider.charges[0] }
      const refused = async (message: Request, reason: string) => {
        const response = await hook(message)
        expect([response.status, await response.json()]).toMatchObject([400, { status: 400, reason }])
      }
      await refused(signedWebhook(event, { id: 'msg_f', key: Buffer.alloc(32, 8) }), 'forged')
      await refused(signedWebhook(event, { id: 'msg_f', inSeconds: -400 }), 'stale')
      await refused(signedWebhook(event, { id: 'msg_f', inSeconds: 400 }), 'stale')
      expect((await stage.latchkey.inspect({ id })).evidence).toEqual([])
      expect(await stage.stateOf(id)).toBe('unknown')

      const recorded = signedWebhook(event, { id: 'msg_f' })
      expect((await hook(recorded.clone())).status).toBe(200)
      await refused(recorded, 'replayed')
      expect((await hook(signedWebhook(event, { id: 'msg_f', inSeconds: 5 }))).status).toBe(200)
      const { evidence } = await stage.latchkey.inspect({ id })
      expect(evidence).toHaveLength(1)
      expect(stage.telemetry.counted('reconcile.refused')).toBe(4)
      expect(stage.telemetry.counted('reconcile.resolved')).toBe(1)
    })

    it('finds the open effect by the id of its row, and takes nothing for an effect that nobody has tried', async () => {
      const stage = await stageOf()
      const hookOf = (name: string, id: string, effect?: string) =>
        stage.reconcile.webhook<{ charge: Charge }>({
          name,
          verify: standardWebhooks({ secrets: [secret] }),
          evidence: ({ charge: value }) => ({
            id,
            ...(effect === undefined ? {} : { effect }),
            verdict: { kind: 'happened', value },
          }),
        })
      const open = await stage.unknownPayment('by id')
      const event = { charge: stage.provider.charges[0] }
      expect((await hookOf('open', open)(signedWebhook(event))).status).toBe(200)
      expect(await stage.stateOf(open)).toBe('pending')

      const again = await stage.unknownPayment('again')
      await stage.latchkey.settle({ id: again }, { kind: 'never-happened' }, act)
      expect((await hookOf('again', again, 'charge')(signedWebhook(event))).status).toBe(200)
      expect(stage.telemetry.told).toContainEqual(['reconcile.failed', expect.objectContaining({ identity: again })])
      stage.provider.faults.push('lost-before')
      await expect(stage.pay.run(request('again'))).rejects.toMatchObject({ code: 'outcome-unknown' })
      const waiting = await stage.place.store.reconciliation.waiting({ limit: 1_000 })
      expect(waiting.filter(({ operation }) => operation === stage.pay.name)).toEqual([])
    })

    it('says aloud what contradicts an earlier settlement, and takes it for no news about the next try', async () => {
      const stage = await stageOf()
      const hook = mountWebhook(stage)
      const id = await stage.unknownPayment('contradicted')
      const late = { charge: stage.provider.charges[0] }
      expect(await stage.latchkey.settle({ id }, { kind: 'never-happened' }, act)).toEqual({ kind: 'settled' })
      expect((await hook(signedWebhook(late, { id: 'msg_c' }))).status).toBe(200)
      expect(stage.telemetry.told).toContainEqual([
        'reconcile.failed',
        expect.objectContaining({ detail: 'contradiction' }),
      ])
      stage.provider.faults.push('lost-before')
      await expect(stage.pay.run(request('contradicted'))).rejects.toMatchObject({ code: 'outcome-unknown' })
      await stage.work({ reconciler: { use: stage.reconcile, ...soon }, only: ['reconciler'] })
      expect((await hook(signedWebhook(late, { id: 'msg_c', inSeconds: 5 }))).status).toBe(200)
      expect(await stage.stateOf(id)).toBe('unknown')

      // The journal knows the next key only; the row's id finds the one that was given up.
      const withId = stage.reconcile.webhook<{ charge: Charge }>({
        name: 'provider-with-id',
        verify: standardWebhooks({ secrets: [secret] }),
        evidence: ({ charge }) => ({ downstreamKey: charge.key, id, verdict: { kind: 'happened', value: charge } }),
      })
      const before = stage.telemetry.counted('reconcile.failed')
      expect((await withId(signedWebhook(late, { id: 'msg_d' }))).status).toBe(200)
      expect(stage.telemetry.counted('reconcile.failed')).toBe(before + 1)
      expect(await stage.stateOf(id)).toBe('unknown')
    })
  })

  describe('by asking', () => {
    it('settles without any webhook, with what the question told the provider', async () => {
      const stage = await stageOf()
      const asked: unknown[] = []
      stage.reconcile.register(stage.pay, {
        backoffMs: [100, 100],
        lookup({ signal: _, ...question }) {
          asked.push(question)
          return verdictOf(stage.provider, question.key)
        },
      })
      const id = await stage.unknownPayment('asked')
      await stage.work({ reconciler: { use: stage.reconcile, ...soon } })
      await eventually(async () => (await stage.stateOf(id)) === 'completed')
      await expectPaid(stage, 'asked')
      expect(asked).toMatchObject([
        {
          id,
          scope: 'acme',
          operation: stage.pay.name,
          effect: { name: 'charge', epoch: 0 },
          key: stage.provider.calls[0],
          input: { label: 'asked' },
          version: 1,
          attempts: 1,
        },
      ])
      expect(stage.telemetry.counted('reconcile.scheduled')).toBe(1)
    })

    it('believes "never happened" only after the quarantine, and then tries once more with another key', async () => {
      const stage = await stageOf()
      const looks: number[] = []
      const quarantineMs = 1_500
      stage.reconcile.register(stage.pay, {
        quarantineMs,
        backoffMs: Array.from({ length: 5 }, () => 100),
        lookup({ key, unknownForMs }) {
          looks.push(unknownForMs)
          return verdictOf(stage.provider, key)
        },
      })
      const id = await stage.unknownPayment('lost-before', 'lost-before')
      await stage.work({ reconciler: { use: stage.reconcile, ...soon } })
      await eventually(async () => (await stage.stateOf(id)) === 'completed')
      await expectPaid(stage, 'lost-before')
      expect(stage.provider.calls).toHaveLength(2)
      expect(new Set(stage.provider.calls).size).toBe(2)
      expect(looks.length).toBeGreaterThan(1)
      // Two clocks are rounded here.
      expect(looks.at(-1)).toBeGreaterThanOrEqual(quarantineMs - 2)
      const { evidence } = await stage.latchkey.inspect({ id })
      expect(evidence.filter(({ applied }) => applied)).toMatchObject([
        { source: 'look-up', verdict: 'never-happened' },
      ])
      expect(evidence.length).toBe(looks.length)
    })

    it('takes a throw, a wrong verdict and silence for no answer, parks in the end and says so; a person ends it', async () => {
      const stage = await stageOf()
      let looks = 0
      const aborted: boolean[] = []
      const answers = [
        () => Promise.reject(new Error('503 from the provider')),
        async () => ({ kind: 'happened' }) as never,
        ({ signal }: { signal: AbortSignal }) =>
          new Promise<never>(() => signal.addEventListener('abort', () => aborted.push(true))),
        async () => ({ kind: 'still-unknown' }) as const,
      ]
      stage.reconcile.register(stage.pay, {
        backoffMs: answers.map(() => 30),
        timeoutMs: 200,
        lookup: async question => answers[looks++]?.(question) ?? { kind: 'still-unknown' },
      })
      const id = await stage.unknownPayment('gone')
      await stage.work({ reconciler: { use: stage.reconcile, ...soon } })
      await eventually(async () => (await stage.place.store.read(id))?.parked === true)
      expect(await stage.place.store.read(id)).toMatchObject({ state: 'unknown', lastErrorCode: 'unresolved' })
      expect([looks, aborted]).toEqual([4, [true]])
      const failures = stage.telemetry.told.flatMap(one => {
        const [metric, attributes] = one as [string, { detail?: string }]
        return metric === 'reconcile.failed' ? [attributes.detail] : []
      })
      expect(failures).toEqual(['threw', 'malformed', 'timeout', 'unresolved'])
      expect(stage.telemetry.counted('parked')).toBe(1)
      expect(stage.telemetry.told).toContainEqual([expect.stringContaining('the row is parked'), expect.anything()])

      const verdict = { kind: 'happened', value: stage.provider.charges[0] } as const
      expect(await stage.latchkey.settle({ id }, verdict, act)).toEqual({ kind: 'settled' })
      const answer = await stage.pay.run(request('gone'))
      expect(answer).toMatchObject({ status: 201, value: { charge: stage.provider.charges[0]?.id } })
      const { audit, evidence } = await stage.latchkey.inspect({ id })
      expect(audit).toMatchObject([{ act: 'settle', ...act }])
      expect(evidence).toMatchObject([{ source: 'operator', applied: true }])
      await expectPaid(stage, 'gone')
    })

    it('asks about the whole where no effect is in doubt', async () => {
      const stage = await stageOf()
      const operation = `${stage.pay.name}.whole`
      const whole = stage.latchkey.phased(operation, { version: 1 }, async (_, input: { amount: number }) => {
        throw outcomeUnknown(`a fax about ${input.amount}`)
      })
      stage.reconcile.register(whole, {
        backoffMs: [20],
        lookup: () => ({ kind: 'still-unknown' }),
        lookupOutcome: ({ input }) => ({ kind: 'declined', outcome: json(402, { declined: input.amount }) }),
      })
      const asked = { scope: 'acme', key: 'whole', input: { amount: 7 } }
      await expect(whole.run(asked)).rejects.toMatchObject({ code: 'outcome-unknown' })
      await stage.work({ reconciler: { use: stage.reconcile, ...soon }, only: ['reconciler'] })
      const id = stage.latchkey.identify({ scope: 'acme', operation, key: 'whole' })
      await eventually(async () => (await stage.stateOf(id)) === 'completed')
      expect(await whole.run(asked)).toMatchObject({ status: 402, value: { declined: 7 } })
    })

    it('asks again as if for the first time after a person has taken the parked mark away', async () => {
      const stage = await stageOf()
      let knows = false
      stage.reconcile.register(stage.pay, {
        backoffMs: [20],
        lookup: ({ key }) => (knows ? verdictOf(stage.provider, key) : { kind: 'still-unknown' }),
      })
      const id = await stage.unknownPayment('unparked')
      await stage.work({ reconciler: { use: stage.reconcile, ...soon } })
      await eventually(async () => (await stage.place.store.read(id))?.parked === true)
      knows = true
      expect(await stage.latchkey.unpark({ id }, act)).toEqual({ kind: 'unparked' })
      await eventually(async () => (await stage.stateOf(id)) === 'completed')
      await expectPaid(stage, 'unparked')
    })
  })

  describe('by comparing the ledgers', () => itSettlesByComparing(stageOf))

  it('counts what is unknown, and says once that nobody is asked about it', async () => {
    const stage = await stageOf()
    await stage.unknownPayment('uncounted')
    await stage.work({ reconciler: { use: stage.reconcile, ...soon }, only: ['reconciler'] })
    const operation = stage.pay.name
    expect(stage.telemetry.told).toEqual(
      expect.arrayContaining([
        ['unknown.count', 1, { operation }],
        ['unknown.oldest_age', expect.any(Number), { operation }],
        ['unknown.without_lookup', 1, { operation }],
        [expect.stringContaining('no look-up is registered'), { operation }],
      ]),
    )
  })
}
