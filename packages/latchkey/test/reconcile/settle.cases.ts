/** How an unknown payment ends, on any store. Run by a test file per store. */
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
  openFixture,
  request,
  secret,
  signedWebhook,
  type ReconcileFixture,
  verdictOf,
} from './fixture.ts'
import { present } from '../present.ts'

const act = { by: 'alex', reason: 'the provider said so on the phone' }
const soon = { everyMs: 20 }

export function itSettlesUnknowns(placeName: () => string): void {
  const open: ReconcileFixture[] = []
  const openOne = async () => {
    const fixture = await openFixture(placeName())
    open.push(fixture)
    return fixture
  }
  beforeAll(async () => {
    const place = await openPlace(placeName())
    await place.migrate()
    await place.close()
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map(fixture => fixture.close()))
  })

  describe('by webhook', () => {
    it('settles at once, and the remaining steps go on without waiting for anybody to poll', async () => {
      const fixture = await openOne()
      const hook = mountWebhook(fixture)
      await fixture.work({ reconciler: { use: fixture.reconcile, everyMs: 600_000 } })
      const id = await fixture.unknownPayment('hooked')
      const response = await hook(signedWebhook({ charge: fixture.provider.charges[0] }, { id: 'msg_hooked' }))
      expect(response.status).toBe(200)
      // The next poll is in ten minutes, longer than this test waits.
      await eventually(async () => (await fixture.stateOf(id)) === 'completed')
      await expectPaid(fixture, 'hooked')
      const { evidence } = await fixture.latchkey.inspect({ id })
      expect(evidence).toMatchObject([{ source: 'webhook', verdict: 'happened', effect: 'charge', applied: true }])
      expect(fixture.telemetry.counted('reconcile.resolved')).toBe(1)
    })

    it('uses one that came before the response', async () => {
      const fixture = await openOne()
      const hook = mountWebhook(fixture)
      const id = await fixture.unknownPayment('early', async charge => {
        expect((await hook(signedWebhook({ charge }, { id: 'msg_early' }))).status).toBe(200)
        throw new Error('socket hang up')
      })
      expect((await fixture.latchkey.inspect({ id })).evidence).toMatchObject([{ source: 'webhook', applied: false }])
      await fixture.work({ reconciler: { use: fixture.reconcile, ...soon } })
      await eventually(async () => (await fixture.stateOf(id)) === 'completed')
      await expectPaid(fixture, 'early')
    })

    it('changes nothing and answers 400 when one is forged, stale or replayed', async () => {
      const fixture = await openOne()
      const hook = mountWebhook(fixture)
      const id = await fixture.unknownPayment('forged')
      const event = { charge: fixture.provider.charges[0] }
      const refused = async (message: Request, reason: string) => {
        const response = await hook(message)
        expect([response.status, await response.json()]).toMatchObject([400, { status: 400, reason }])
      }
      await refused(signedWebhook(event, { id: 'msg_f', key: Buffer.alloc(32, 8) }), 'forged')
      await refused(signedWebhook(event, { id: 'msg_f', inSeconds: -400 }), 'stale')
      await refused(signedWebhook(event, { id: 'msg_f', inSeconds: 400 }), 'stale')
      expect((await fixture.latchkey.inspect({ id })).evidence).toEqual([])
      expect(await fixture.stateOf(id)).toBe('unknown')

      const recorded = signedWebhook(event, { id: 'msg_f' })
      expect((await hook(recorded.clone())).status).toBe(200)
      await refused(recorded, 'replayed')
      expect((await hook(signedWebhook(event, { id: 'msg_f', inSeconds: 5 }))).status).toBe(200)
      const { evidence } = await fixture.latchkey.inspect({ id })
      expect(evidence).toHaveLength(1)
      expect(fixture.telemetry.counted('reconcile.refused')).toBe(4)
      expect(fixture.telemetry.counted('reconcile.resolved')).toBe(1)
    })

    it('finds the open effect by the id of its row, and takes nothing for an effect that nobody has tried', async () => {
      const fixture = await openOne()
      const hookOf = (name: string, id: string, effect?: string) =>
        fixture.reconcile.webhook<{ charge: Charge }>({
          name,
          verify: standardWebhooks({ secrets: [secret] }),
          evidence: ({ charge: value }) => ({
            id,
            ...(effect === undefined ? {} : { effect }),
            verdict: { kind: 'happened', value },
          }),
        })
      const open = await fixture.unknownPayment('by id')
      const event = { charge: fixture.provider.charges[0] }
      expect((await hookOf('open', open)(signedWebhook(event))).status).toBe(200)
      expect(await fixture.stateOf(open)).toBe('pending')

      const again = await fixture.unknownPayment('again')
      await fixture.latchkey.settle({ id: again }, { kind: 'never-happened' }, act)
      expect((await hookOf('again', again, 'charge')(signedWebhook(event))).status).toBe(200)
      expect(fixture.telemetry.told).toContainEqual(['reconcile.failed', expect.objectContaining({ identity: again })])
      fixture.provider.faults.push('lost-before')
      await expect(fixture.pay.run(request('again'))).rejects.toMatchObject({ code: 'outcome-unknown' })
      const waiting = await present(fixture.place.store.reconciliation).waiting({ limit: 1_000 })
      expect(waiting.filter(({ operation }) => operation === fixture.pay.name)).toEqual([])
    })

    it('says aloud what contradicts an earlier settlement, and takes it for no news about the next try', async () => {
      const fixture = await openOne()
      const hook = mountWebhook(fixture)
      const id = await fixture.unknownPayment('contradicted')
      const late = { charge: fixture.provider.charges[0] }
      expect(await fixture.latchkey.settle({ id }, { kind: 'never-happened' }, act)).toEqual({ kind: 'settled' })
      expect((await hook(signedWebhook(late, { id: 'msg_c' }))).status).toBe(200)
      expect(fixture.telemetry.told).toContainEqual([
        'reconcile.failed',
        expect.objectContaining({ detail: 'contradiction' }),
      ])
      fixture.provider.faults.push('lost-before')
      await expect(fixture.pay.run(request('contradicted'))).rejects.toMatchObject({ code: 'outcome-unknown' })
      await fixture.work({ reconciler: { use: fixture.reconcile, ...soon }, only: ['reconciler'] })
      expect((await hook(signedWebhook(late, { id: 'msg_c', inSeconds: 5 }))).status).toBe(200)
      expect(await fixture.stateOf(id)).toBe('unknown')

      // The journal has only the next key; the row's id finds the abandoned one.
      const withId = fixture.reconcile.webhook<{ charge: Charge }>({
        name: 'provider-with-id',
        verify: standardWebhooks({ secrets: [secret] }),
        evidence: ({ charge }) => ({ downstreamKey: charge.key, id, verdict: { kind: 'happened', value: charge } }),
      })
      const before = fixture.telemetry.counted('reconcile.failed')
      expect((await withId(signedWebhook(late, { id: 'msg_d' }))).status).toBe(200)
      expect(fixture.telemetry.counted('reconcile.failed')).toBe(before + 1)
      expect(await fixture.stateOf(id)).toBe('unknown')
    })
  })

  describe('by asking', () => {
    it('settles without any webhook, with what the question told the provider', async () => {
      const fixture = await openOne()
      const asked: unknown[] = []
      fixture.reconcile.register(fixture.pay, {
        backoffMs: [100, 100],
        lookup({ signal: _, ...question }) {
          asked.push(question)
          return verdictOf(fixture.provider, question.key)
        },
      })
      const id = await fixture.unknownPayment('asked')
      await fixture.work({ reconciler: { use: fixture.reconcile, ...soon } })
      await eventually(async () => (await fixture.stateOf(id)) === 'completed')
      await expectPaid(fixture, 'asked')
      expect(asked).toMatchObject([
        {
          id,
          scope: 'acme',
          operation: fixture.pay.name,
          effect: { name: 'charge', epoch: 0 },
          key: fixture.provider.calls[0],
          input: { label: 'asked' },
          version: 1,
          attempts: 1,
        },
      ])
      expect(fixture.telemetry.counted('reconcile.scheduled')).toBe(1)
    })

    it('believes "never happened" only after the quarantine, and then tries once more with another key', async () => {
      const fixture = await openOne()
      const looks: number[] = []
      const quarantineMs = 1_500
      fixture.reconcile.register(fixture.pay, {
        quarantineMs,
        backoffMs: Array.from({ length: 5 }, () => 100),
        lookup({ key, unknownForMs }) {
          looks.push(unknownForMs)
          return verdictOf(fixture.provider, key)
        },
      })
      const id = await fixture.unknownPayment('lost-before', 'lost-before')
      await fixture.work({ reconciler: { use: fixture.reconcile, ...soon } })
      await eventually(async () => (await fixture.stateOf(id)) === 'completed')
      await expectPaid(fixture, 'lost-before')
      expect(fixture.provider.calls).toHaveLength(2)
      expect(new Set(fixture.provider.calls).size).toBe(2)
      expect(looks.length).toBeGreaterThan(1)
      // Two clocks are rounded here.
      expect(looks.at(-1)).toBeGreaterThanOrEqual(quarantineMs - 2)
      const { evidence } = await fixture.latchkey.inspect({ id })
      expect(evidence.filter(({ applied }) => applied)).toMatchObject([
        { source: 'look-up', verdict: 'never-happened' },
      ])
      expect(evidence.length).toBe(looks.length)
    })

    it('takes a throw, a wrong verdict and silence for no answer, parks in the end and says so; a person ends it', async () => {
      const fixture = await openOne()
      let looks = 0
      const aborted: boolean[] = []
      const answers = [
        () => Promise.reject(new Error('503 from the provider')),
        async () => ({ kind: 'happened' }) as never,
        ({ signal }: { signal: AbortSignal }) =>
          new Promise<never>(() => signal.addEventListener('abort', () => aborted.push(true))),
        async () => ({ kind: 'still-unknown' }) as const,
      ]
      fixture.reconcile.register(fixture.pay, {
        backoffMs: answers.map(() => 30),
        timeoutMs: 200,
        lookup: async question => answers[looks++]?.(question) ?? { kind: 'still-unknown' },
      })
      const id = await fixture.unknownPayment('gone')
      await fixture.work({ reconciler: { use: fixture.reconcile, ...soon } })
      await eventually(async () => (await fixture.place.store.read(id))?.parked === true)
      expect(await fixture.place.store.read(id)).toMatchObject({ state: 'unknown', lastErrorCode: 'unresolved' })
      expect([looks, aborted]).toEqual([4, [true]])
      const failures = fixture.telemetry.told.flatMap(one => {
        const [metric, attributes] = one as [string, { detail?: string }]
        return metric === 'reconcile.failed' ? [attributes.detail] : []
      })
      expect(failures).toEqual(['threw', 'malformed', 'timeout', 'unresolved'])
      expect(fixture.telemetry.counted('parked')).toBe(1)
      expect(fixture.telemetry.told).toContainEqual([expect.stringContaining('the row is parked'), expect.anything()])

      const verdict = { kind: 'happened', value: fixture.provider.charges[0] } as const
      expect(await fixture.latchkey.settle({ id }, verdict, act)).toEqual({ kind: 'settled' })
      const answer = await fixture.pay.run(request('gone'))
      expect(answer).toMatchObject({ status: 201, value: { charge: fixture.provider.charges[0]?.id } })
      const { audit, evidence } = await fixture.latchkey.inspect({ id })
      expect(audit).toMatchObject([{ act: 'settle', ...act }])
      expect(evidence).toMatchObject([{ source: 'operator', applied: true }])
      await expectPaid(fixture, 'gone')
    })

    it('asks about the whole where no effect is in doubt', async () => {
      const fixture = await openOne()
      const operation = `${fixture.pay.name}.whole`
      const whole = fixture.latchkey.phased(operation, { version: 1 }, async (_, input: { amount: number }) => {
        throw outcomeUnknown(`a fax about ${input.amount}`)
      })
      fixture.reconcile.register(whole, {
        backoffMs: [20],
        lookup: () => ({ kind: 'still-unknown' }),
        lookupOutcome: ({ input }) => ({ kind: 'declined', outcome: json(402, { declined: input.amount }) }),
      })
      const asked = { scope: 'acme', key: 'whole', input: { amount: 7 } }
      await expect(whole.run(asked)).rejects.toMatchObject({ code: 'outcome-unknown' })
      await fixture.work({ reconciler: { use: fixture.reconcile, ...soon }, only: ['reconciler'] })
      const id = fixture.latchkey.identify({ scope: 'acme', operation, key: 'whole' })
      await eventually(async () => (await fixture.stateOf(id)) === 'completed')
      expect(await whole.run(asked)).toMatchObject({ status: 402, value: { declined: 7 } })
    })

    it('asks again as if for the first time after a person has taken the parked mark away', async () => {
      const fixture = await openOne()
      let knows = false
      fixture.reconcile.register(fixture.pay, {
        backoffMs: [20],
        lookup: ({ key }) => (knows ? verdictOf(fixture.provider, key) : { kind: 'still-unknown' }),
      })
      const id = await fixture.unknownPayment('unparked')
      await fixture.work({ reconciler: { use: fixture.reconcile, ...soon } })
      await eventually(async () => (await fixture.place.store.read(id))?.parked === true)
      knows = true
      expect(await fixture.latchkey.unpark({ id }, act)).toEqual({ kind: 'unparked' })
      await eventually(async () => (await fixture.stateOf(id)) === 'completed')
      await expectPaid(fixture, 'unparked')
    })
  })

  describe('by comparing the ledgers', () => itSettlesByComparing(openOne))

  it('counts what is unknown, and says once that nobody is asked about it', async () => {
    const fixture = await openOne()
    await fixture.unknownPayment('uncounted')
    await fixture.work({ reconciler: { use: fixture.reconcile, ...soon }, only: ['reconciler'] })
    const operation = fixture.pay.name
    expect(fixture.telemetry.told).toEqual(
      expect.arrayContaining([
        ['unknown.count', 1, { operation }],
        ['unknown.oldest_age', expect.any(Number), { operation }],
        ['unknown.without_lookup', 1, { operation }],
        [expect.stringContaining('no look-up is registered'), { operation }],
      ]),
    )
  })
}
