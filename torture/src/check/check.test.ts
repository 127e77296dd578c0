import { describe, expect, it } from 'vitest'
import { check } from './check.ts'
import type { Evidence, Facts, KeyRow, Proof } from './facts.ts'
import { hardCasesOf } from './hard-cases.ts'
import type { AppEvent, ClientEvent, WebhookEvent } from '../history.ts'

const told = (key: string, kind: ClientEvent['kind'], body: object, more: Partial<ClientEvent> = {}): ClientEvent[] => [
  { type: 'invoke', key, kind, account: 'a' },
  { type: 'ok', key, kind, account: 'a', status: 201, body: JSON.stringify(body), ...more },
]
const row = (key: string, more: Partial<KeyRow> = {}): KeyRow => ({
  key,
  operation: 'payments.create',
  state: 'completed',
  parked: false,
  leaseDead: false,
  crashes: 0,
  listed: false,
  ...more,
})
const arrival = (dedupId: string, key: string, seq: number, answered: 'accepted' | 'failed' | 'lost' = 'accepted') =>
  ({ type: 'receipt', dedupId, account: 'a', seq, key, answered }) as const
const metric = (name: string, operation: string, detail = '') => ({ type: 'metric', name, operation, detail }) as const
const asked = (key: string, name: string, at: number): AppEvent => ({ type: 'asked', key, name, at })
const ended = (key: string, name: string, at: number, detail = 'ambiguous'): AppEvent => ({
  type: 'charge-ended',
  key,
  name,
  at,
  detail,
})
const proof = (key: string, source: Proof['source'], more: Partial<Proof> = {}): Proof => ({
  key,
  source,
  verdict: 'happened',
  applied: true,
  at: 0,
  epoch: 0,
  ...more,
})
const letter = (how: WebhookEvent['how'], status: number, more: Partial<WebhookEvent> = {}): WebhookEvent => ({
  type: 'webhook',
  how,
  key: 'p-1',
  status,
  ...more,
})
const quarantineMs = 1_000
const looked = (more: Partial<ClientEvent>): ClientEvent => ({
  type: 'info',
  key: 'refunds-1',
  kind: 'refunds',
  account: 'a',
  looked: true,
  ...more,
})
const accepted = (key: string, id = key): ClientEvent[] => [
  { type: 'invoke', key, kind: 'refunds', account: 'a' },
  { type: 'info', key, kind: 'refunds', account: 'a', status: 202, body: JSON.stringify({ id }) },
]

/** An order, a transfer, two payments and a refund with receipts. */
function cleanFacts(): Facts {
  return {
    terms: { store: 'postgres', quarantineMs, dedup: true, webhooks: true },
    orders: [{ id: 1, key: 'o-1' }],
    payments: [
      { id: 1, key: 'p-1' },
      { id: 2, key: 'p-2' },
    ],
    refunds: [{ id: 1, key: 'refunds-1' }],
    transfers: [{ id: 1, key: 't-1', runs: 2 }],
    receipts: [
      { account: 'a', seq: 1, key: 'p-1' },
      { account: 'a', seq: 2, key: 'p-2' },
      { account: 'a', seq: 3, key: 'refunds-1' },
    ],
    keys: [
      row('o-1', { operation: 'orders.create' }),
      row('p-1', { crashes: 1 }),
      row('p-2'),
      row('t-1', { operation: 'transfers.create' }),
      row('refunds-1', { operation: 'refunds.create', crashes: 1 }),
      row('p-3', { state: 'unknown', listed: true, parked: true }),
      row('p-4', { state: 'failed_retryable', parked: true }),
    ],
    proofs: [
      proof('p-1', 'webhook', { at: 150 }),
      proof('p-1', 'late-owner', { applied: false }),
      proof('p-2', 'look-up'),
      proof('p-2', 'ledger'),
      proof('refunds-1', 'look-up', { verdict: 'never-happened', at: 2_500 }),
    ],
    unknowns: [{ key: 'refunds-1', since: 1_100 }],
    parkedReceipts: [],
  }
}

/** What was done about them, with each hard case met once: a run as it should be. */
function cleanRun(): Evidence {
  return {
    facts: cleanFacts(),
    charges: [
      { id: 'ch_1', key: 'd-1', reference: 'p-1 row-1' },
      { id: 'ch_2', key: 'd-2', reference: 'p-2 row-2' },
      { id: 'ch_3', key: 'd-3-again', reference: 'refunds-1 row-3' },
    ],
    clients: [
      ...told('o-1', 'orders', { order: 1, nonce: 'x' }),
      ...told('o-1', 'orders', { order: 1, nonce: 'x' }, { replayed: true }),
      ...told('p-1', 'payments', { payment: 1, charge: 'ch_1', receipt: 1 }),
      ...told('p-2', 'payments', { payment: 2, charge: 'ch_2', receipt: 2 }),
      ...told('t-1', 'transfers', { transfer: 1 }),
      ...accepted('refunds-1'),
      ...accepted('refunds-1'),
      looked({ status: 404, foreign: true }),
      looked({ type: 'ok', status: 201, body: JSON.stringify({ refund: 1, charge: 'ch_3', receipt: 3 }) }),
      { type: 'invoke', key: 'p-3', kind: 'payments', account: 'a' },
      { type: 'info', key: 'p-3', kind: 'payments', account: 'a', status: 504, code: 'outcome-unknown' },
      { type: 'info', key: 'p-4', kind: 'payments', account: 'a', status: 409, code: 'parked' },
    ],
    apps: [
      metric('claim_lost', 'payments.create'),
      metric('zombie_key', 'payouts.create'),
      { type: 'resumed-midway', key: 'p-1' },
      { type: 'resumed-midway', key: 'refunds-1' },
      metric('reconcile.resolved', 'payments.create', 'kept'),
      asked('p-1', 'd-1', 100),
      ended('p-1', 'd-1', 200, 'charged'),
      asked('refunds-1', 'd-3', 1_000),
      ended('refunds-1', 'd-3', 1_050),
      asked('refunds-1', 'd-3-again', 2_600),
      ended('refunds-1', 'd-3-again', 2_650, 'charged'),
      { type: 'fault-point', name: 'read after commit:before', detail: 'passed' },
    ],
    nemesis: [{ type: 'fault', kind: 'app-killed' }],
    receipts: [
      arrival('d-1', 'p-1', 1),
      arrival('d-2', 'p-2', 2),
      arrival('d-1', 'p-1', 1),
      arrival('d-3', 'refunds-1', 3),
    ],
    webhooks: [
      letter('genuine', 200, { at: 150 }),
      letter('again', 200),
      letter('replayed', 400),
      letter('forged', 400),
      letter('stale', 400),
    ],
  }
}

const withFacts = (facts: Partial<Facts>): Evidence => ({ ...cleanRun(), facts: { ...cleanRun().facts, ...facts } })
const withClients = (...more: ClientEvent[]): Evidence => ({ ...cleanRun(), clients: [...cleanRun().clients, ...more] })
const kindsOf = (evidence: Evidence) => [...new Set(check(evidence).violations.map(({ kind }) => kind))]

describe('the checker', () => {
  it('passes a clean run, and counts it', () => {
    const report = check(cleanRun())
    expect(report).toMatchObject({ verdict: 'passed', violations: [], faults: { 'app-killed': 1 } })
    expect(report.counts).toMatchObject({ acknowledged: 5, executed: 5, duplicates: 0, lost: 0, unknown: 1, parked: 2 })
    expect(report.counts).toMatchObject({ 'evidence: look-up': 2, 'settled by look-up': 2, 'settled by late-owner': 0 })
  })

  it.each<[string, Evidence]>([
    ['an order', withFacts({ orders: [] })],
    ['the row of a payment', withFacts({ payments: [] })],
    ['the row of a refund', withFacts({ refunds: [] })],
    ['a transfer', withFacts({ transfers: [] })],
    ['a receipt', withFacts({ receipts: [] })],
    ['a charge', { ...cleanRun(), charges: [] }],
    ['the charge that the answer names', { ...cleanRun(), charges: [{ id: 'ch_9', reference: 'p-1 row-1' }] }],
  ])('finds lost: %s that a client was told of', (_, evidence) => {
    expect(check(evidence).verdict).toBe('failed')
    expect(kindsOf(evidence)).toContain('lost')
  })

  it('finds lost behind an answer that said it is not stored', () => {
    const unstored = told('o-9', 'orders', { order: 9 }, { unstored: true })
    expect(kindsOf(withClients(...unstored))).toEqual(['lost'])
  })

  it('finds a second row and a second charge, also where no client saw an answer', () => {
    const again = { id: 7, key: 'p-2' }
    expect(kindsOf(withFacts({ payments: [...cleanRun().facts.payments, again] }))).toEqual(['twice'])
    const unseen = ['ch_7', 'ch_8'].map(id => ({ id, reference: 'p-3 row-9' }))
    expect(kindsOf({ ...cleanRun(), charges: [...cleanRun().charges, ...unseen] })).toEqual(['twice'])
  })

  it('finds two final answers that differ, and excuses one that said it is not stored', () => {
    const other = told('o-1', 'orders', { order: 1, nonce: 'y' })
    expect(kindsOf(withClients(...other))).toEqual(['unequal-answers'])
    expect(kindsOf(withClients(...told('o-1', 'orders', { order: 1, nonce: 'y' }, { unstored: true })))).toEqual([])
  })

  it('finds an answer to another request under the same key', () => {
    expect(kindsOf(withClients(...told('o-1', 'orders', { order: 1, nonce: 'x' }, { misuse: true })))).toEqual([
      'misuse-answered',
    ])
  })

  it('finds a charge behind a declined payment', () => {
    const declined = told('p-3', 'payments', { declined: true }, { status: 402 })
    const charges = [...cleanRun().charges, { id: 'ch_4', reference: 'p-3 row-4' }]
    expect(kindsOf({ ...withClients(...declined), charges })).toEqual(['charged-though-declined'])
  })

  it('finds what is still in progress, an unknown that nobody lists, and a key without an end', () => {
    const keys = cleanRun().facts.keys
    const dead = row('p-5', { state: 'in_progress', leaseDead: true })
    expect(kindsOf(withFacts({ keys: [...keys, dead] }))).toEqual(['left-in-progress'])
    expect(kindsOf(withFacts({ keys: [...keys, row('p-5', { state: 'unknown' })] }))).toEqual(['unlisted-unknown'])
    const listed = row('p-5', { state: 'unknown', listed: true })
    expect(kindsOf(withFacts({ keys: [...keys, listed] }))).toEqual(['unsettled-unknown'])
    expect(kindsOf(withFacts({ keys: keys.filter(({ key }) => key !== 'p-3') }))).toEqual(['stuck'])
  })

  it('finds a process that died without being killed', () => {
    const nemesis = [...cleanRun().nemesis, { type: 'fault', kind: 'app-died', app: 1, detail: 'code 1' } as const]
    expect(kindsOf({ ...cleanRun(), nemesis })).toEqual(['process-died'])
  })

  it('finds receipts that never came, came from a rollback, or came too early', () => {
    const [first, second, copy] = [arrival('d-1', 'p-1', 1), arrival('d-2', 'p-2', 2), arrival('d-1', 'p-1', 1)]
    const last = arrival('d-3', 'refunds-1', 3)
    const withReceipts = (...receipts: Evidence['receipts']): Evidence => ({ ...cleanRun(), receipts })
    expect(kindsOf(withReceipts(first, second, copy))).toEqual(['receipt-undelivered'])
    expect(kindsOf(withReceipts(first, second, copy, arrival('d-3', 'refunds-1', 3, 'failed')))).toEqual([
      'receipt-undelivered',
    ])
    expect(kindsOf(withReceipts(first, second, copy, last, arrival('d-4', 'p-9', 4)))).toEqual(['receipt-from-nowhere'])
    expect(kindsOf(withReceipts(second, first, copy, last))).toEqual(['receipt-out-of-order'])
  })

  it('calls a run inconclusive in which a hard case did not occur, and names it', () => {
    const report = check({ ...cleanRun(), apps: [] })
    expect(report.verdict).toBe('inconclusive')
    const missed = hardCasesOf({ store: 'postgres', webhooks: true }).filter(name => report.hardCases[name] === 0)
    expect(missed).toEqual([
      'stale write refused',
      'resumed mid-way after a crash',
      'deferred work resumed after a crash',
      'unknown entered by the sweeper',
      'commit unknown',
      'called again after "never happened"',
      'webhook before the response',
      'stored evidence used later',
    ])
  })

  it('asks for a stale answer, a killed server and a lost reply on Redis, and for no commit and no receipt', () => {
    const onRedis = withFacts({ terms: { store: 'redis', quarantineMs, dedup: true, webhooks: true } })
    const report = check(onRedis)
    expect(report.verdict).toBe('inconclusive')
    const missed = hardCasesOf({ store: 'redis', webhooks: true }).filter(name => report.hardCases[name] === 0)
    expect(missed).toEqual(['stale answer refused', 'reply to an answer lost', 'redis killed'])
    const fault = (kind: string) => ({ type: 'fault', kind }) as const
    const nemesis = [fault('answer-reply-swallowed'), fault('redis-killed')]
    expect(check({ ...onRedis, nemesis }).verdict).toBe('inconclusive')
    const apps = [...onRedis.apps, metric('claim_lost', 'transfers.create')]
    expect(check({ ...onRedis, nemesis, apps }).verdict).toBe('passed')
  })

  it('asks for answers from the cache, and for every fault of it, where there is one', () => {
    const tiered = withFacts({ terms: { store: 'tiered', quarantineMs, dedup: true, webhooks: true } })
    const report = check(tiered)
    expect(report.verdict).toBe('inconclusive')
    const missed = hardCasesOf({ store: 'tiered', webhooks: true }).filter(name => report.hardCases[name] === 0)
    expect(missed).toEqual(['answered from the cache', 'cache flushed', 'cache killed', 'cache frozen'])
    const nemesis = ['cache-flushed', 'cache-killed', 'cache-frozen'].map(kind => ({ type: 'fault', kind }) as const)
    expect(check({ ...tiered, nemesis }).verdict).toBe('inconclusive')
    const apps = [...tiered.apps, { type: 'cache-hits', detail: '3' } as const]
    const whole = check({ ...tiered, nemesis, apps })
    expect(whole.verdict).toBe('passed')
    expect(whole.hardCases['answered from the cache']).toBe(3)
  })

  it('asks for no webhooks in a run without them', () => {
    const without = withFacts({ terms: { store: 'postgres', quarantineMs, dedup: true, webhooks: false } })
    expect(check({ ...without, webhooks: [] }).verdict).toBe('passed')
    expect(check({ ...cleanRun(), webhooks: [] }).verdict).toBe('inconclusive')
  })

  it('finds a question that was asked while an earlier one was open, and excuses what never left', () => {
    const withApps = (...more: AppEvent[]): Evidence => ({ ...cleanRun(), apps: [...cleanRun().apps, ...more] })
    const twice = [asked('payouts-1', 'd-5', 100), ended('payouts-1', 'd-5', 150), asked('payouts-1', 'd-5', 200)]
    expect(kindsOf(withApps(...twice))).toEqual(['called-in-doubt'])
    const [first, , second] = twice as [AppEvent, AppEvent, AppEvent]
    expect(kindsOf(withApps(first, ended('payouts-1', 'd-5', 150, 'never-left'), second))).toEqual([])
    expect(kindsOf(withApps(first, ended('payouts-1', 'd-5', 100, 'never-left'), second))).toEqual([])
    expect(kindsOf(withApps(asked('payments-1', 'd-6', 100), asked('payments-1', 'd-6', 200)))).toEqual([])
    const off = {
      ...cleanRun().facts,
      terms: { store: 'postgres' as const, quarantineMs, dedup: false, webhooks: true },
    }
    const repeated = withApps(asked('payments-1', 'd-6', 100), asked('payments-1', 'd-6', 200))
    expect(kindsOf({ ...repeated, facts: off })).toEqual(['called-in-doubt'])
  })

  it('finds a "never happened" that was believed inside the quarantine, and the question that followed it', () => {
    const negative = (more: Partial<Proof>) => [
      ...cleanRun().facts.proofs.filter(({ verdict }) => verdict === 'happened'),
      proof('refunds-1', 'ledger', { verdict: 'never-happened', ...more }),
    ]
    expect(kindsOf(withFacts({ proofs: negative({ at: 2_099 }) }))).toEqual(['believed-too-early'])
    expect(kindsOf(withFacts({ proofs: negative({ at: 2_100 }) }))).toEqual([])
    expect(kindsOf(withFacts({ proofs: negative({ at: 2_099, source: 'operator' }) }))).toEqual([])
    expect(kindsOf(withFacts({ proofs: negative({ at: 2_500, applied: false }) }))).toEqual(['called-in-doubt'])
    expect(kindsOf(withFacts({ unknowns: [] }))).toEqual(['believed-too-early'])
  })

  it('finds a charge under a downstream key that evidence had given up', () => {
    const [one, two, three] = cleanRun().charges
    const charges = [one, two, { ...three, id: 'ch_3', key: 'd-3' }].filter(charge => charge !== undefined)
    expect(kindsOf({ ...cleanRun(), charges })).toEqual(['charged-though-disproven'])
  })

  it.each<[string, WebhookEvent]>([
    ['forged', letter('forged', 200)],
    ['stale', letter('stale', 200)],
    ['replayed', letter('replayed', 200)],
    ['forged, and answered as if it could be sent again', letter('forged', 503)],
  ])('finds a webhook that was believed: %s', (_, webhook) => {
    const webhooks = [...cleanRun().webhooks, webhook]
    expect(kindsOf({ ...cleanRun(), webhooks })).toEqual(['webhook-believed'])
  })

  it('finds what was accepted and has no end, two ends, two operations, or a stranger who was told', () => {
    expect(kindsOf(withClients(...accepted('refunds-9')))).toEqual(['accepted-without-end'])
    const other = looked({ type: 'ok', status: 402, body: JSON.stringify({ refund: 1, declined: true }) })
    expect(kindsOf(withClients(other))).toContain('unequal-answers')
    expect(kindsOf(withClients(...accepted('refunds-1', 'another')))).toEqual(['accepted-twice'])
    expect(kindsOf(withClients(looked({ status: 200, foreign: true })))).toEqual(['shown-to-stranger'])
  })

  it('takes a failed delivery that came again for a retry, not for a duplicate', () => {
    const receipts = [arrival('d-1', 'p-1', 1, 'failed'), arrival('d-1', 'p-1', 1), arrival('d-2', 'p-2', 2)]
    expect(check({ ...cleanRun(), receipts }).hardCases['outbox duplicate delivered']).toBe(0)
    const lost = [arrival('d-1', 'p-1', 1, 'lost'), arrival('d-1', 'p-1', 1), arrival('d-2', 'p-2', 2)]
    expect(check({ ...cleanRun(), receipts: lost }).hardCases['outbox duplicate delivered']).toBe(1)
  })

  it('imports nothing of Latchkey', async () => {
    const { readdirSync, readFileSync } = await import('node:fs')
    const files = readdirSync(new URL('.', import.meta.url)).filter(name => /(?<!\.test)\.ts$/.test(name))
    expect(files.length).toBeGreaterThan(4)
    const texts = [...files, '../history.ts'].map(name => readFileSync(new URL(name, import.meta.url), 'utf8'))
    expect(texts.filter(text => /from '(latchkey|.*packages\/)/.test(text))).toEqual([])
  })
})
