import { describe, expect, it } from 'vitest'
import { check } from './check.ts'
import type { Evidence, Facts, KeyRow } from './check-facts.ts'
import { hardCases } from './check-hard-cases.ts'
import type { ClientEvent } from './history.ts'

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
const metric = (name: string, operation: string) => ({ type: 'metric', name, operation }) as const

/** Two orders, two payments with receipts, and each hard case met once: a run as it should be. */
function cleanRun(): Evidence {
  const facts: Facts = {
    orders: [{ id: 1, key: 'o-1' }],
    payments: [
      { id: 1, key: 'p-1' },
      { id: 2, key: 'p-2' },
    ],
    transfers: [{ id: 1, key: 't-1', runs: 2 }],
    receipts: [
      { account: 'a', seq: 1, key: 'p-1' },
      { account: 'a', seq: 2, key: 'p-2' },
    ],
    keys: [
      row('o-1', { operation: 'orders.create' }),
      row('p-1', { crashes: 1 }),
      row('p-2'),
      row('t-1', { operation: 'transfers.create' }),
      row('p-3', { state: 'unknown', listed: true }),
      row('p-4', { state: 'failed_retryable', parked: true }),
    ],
    parkedReceipts: [],
  }
  return {
    facts,
    charges: [
      { id: 'ch_1', reference: 'p-1' },
      { id: 'ch_2', reference: 'p-2' },
    ],
    clients: [
      ...told('o-1', 'orders', { order: 1, nonce: 'x' }),
      ...told('o-1', 'orders', { order: 1, nonce: 'x' }, { replayed: true }),
      ...told('p-1', 'payments', { payment: 1, charge: 'ch_1', receipt: 1 }),
      ...told('p-2', 'payments', { payment: 2, charge: 'ch_2', receipt: 2 }),
      ...told('t-1', 'transfers', { transfer: 1 }),
      { type: 'invoke', key: 'p-3', kind: 'payments', account: 'a' },
      { type: 'info', key: 'p-3', kind: 'payments', account: 'a', status: 504, code: 'outcome-unknown' },
      { type: 'info', key: 'p-4', kind: 'payments', account: 'a', status: 409, code: 'parked' },
    ],
    apps: [
      metric('claim_lost', 'payments.create'),
      metric('zombie_key', 'payouts.create'),
      { type: 'resumed-midway', key: 'p-1' },
      { type: 'fault-point', name: 'read after commit:before', detail: 'passed' },
    ],
    nemesis: [{ type: 'fault', kind: 'app-killed' }],
    receipts: [arrival('d-1', 'p-1', 1), arrival('d-2', 'p-2', 2), arrival('d-1', 'p-1', 1)],
  }
}

const withFacts = (facts: Partial<Facts>): Evidence => ({ ...cleanRun(), facts: { ...cleanRun().facts, ...facts } })
const withClients = (...more: ClientEvent[]): Evidence => ({ ...cleanRun(), clients: [...cleanRun().clients, ...more] })
const kindsOf = (evidence: Evidence) => [...new Set(check(evidence).violations.map(({ kind }) => kind))]

describe('the checker', () => {
  it('passes a clean run, and counts it', () => {
    const report = check(cleanRun())
    expect(report).toMatchObject({ verdict: 'passed', violations: [], faults: { 'app-killed': 1 } })
    expect(report.counts).toMatchObject({ acknowledged: 4, executed: 4, duplicates: 0, lost: 0, unknown: 1, parked: 1 })
  })

  it.each<[string, Evidence]>([
    ['an order', withFacts({ orders: [] })],
    ['the row of a payment', withFacts({ payments: [] })],
    ['a transfer', withFacts({ transfers: [] })],
    ['a receipt', withFacts({ receipts: [] })],
    ['a charge', { ...cleanRun(), charges: [] }],
    ['the charge that the answer names', { ...cleanRun(), charges: [{ id: 'ch_9', reference: 'p-1' }] }],
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
    const unseen = ['ch_7', 'ch_8'].map(id => ({ id, reference: 'p-3' }))
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
    const charges = [...cleanRun().charges, { id: 'ch_3', reference: 'p-3' }]
    expect(kindsOf({ ...withClients(...declined), charges })).toEqual(['charged-though-declined'])
  })

  it('finds what is still in progress, an unknown that nobody lists, and a key without an end', () => {
    const keys = cleanRun().facts.keys
    const dead = row('p-5', { state: 'in_progress', leaseDead: true })
    expect(kindsOf(withFacts({ keys: [...keys, dead] }))).toEqual(['left-in-progress'])
    expect(kindsOf(withFacts({ keys: [...keys, row('p-5', { state: 'unknown' })] }))).toEqual(['unlisted-unknown'])
    expect(kindsOf(withFacts({ keys: keys.filter(({ key }) => key !== 'p-3') }))).toEqual(['stuck'])
  })

  it('finds receipts that never came, came from a rollback, or came too early', () => {
    const [first, second, copy] = [arrival('d-1', 'p-1', 1), arrival('d-2', 'p-2', 2), arrival('d-1', 'p-1', 1)]
    const withReceipts = (...receipts: Evidence['receipts']): Evidence => ({ ...cleanRun(), receipts })
    expect(kindsOf(withReceipts(first, copy))).toEqual(['receipt-undelivered'])
    expect(kindsOf(withReceipts(first, arrival('d-2', 'p-2', 2, 'failed'), copy))).toEqual(['receipt-undelivered'])
    expect(kindsOf(withReceipts(first, second, copy, arrival('d-3', 'p-9', 3)))).toEqual(['receipt-from-nowhere'])
    expect(kindsOf(withReceipts(second, first, copy))).toEqual(['receipt-out-of-order'])
  })

  it('calls a run inconclusive in which a hard case did not occur, and names it', () => {
    const report = check({ ...cleanRun(), apps: [] })
    expect(report.verdict).toBe('inconclusive')
    const missed = hardCases.filter(name => report.hardCases[name] === 0)
    expect(missed).toEqual([
      'stale write refused',
      'resumed mid-way after a crash',
      'unknown entered by the sweeper',
      'commit unknown',
    ])
  })

  it('takes a failed delivery that came again for a retry, not for a duplicate', () => {
    const receipts = [arrival('d-1', 'p-1', 1, 'failed'), arrival('d-1', 'p-1', 1), arrival('d-2', 'p-2', 2)]
    expect(check({ ...cleanRun(), receipts }).hardCases['outbox duplicate delivered']).toBe(0)
    const lost = [arrival('d-1', 'p-1', 1, 'lost'), arrival('d-1', 'p-1', 1), arrival('d-2', 'p-2', 2)]
    expect(check({ ...cleanRun(), receipts: lost }).hardCases['outbox duplicate delivered']).toBe(1)
  })

  it('imports nothing of Latchkey', async () => {
    const { readdirSync, readFileSync } = await import('node:fs')
    const files = readdirSync(new URL('.', import.meta.url)).filter(name => /^check.*(?<!\.test)\.ts$/.test(name))
    expect(files.length).toBeGreaterThan(4)
    const texts = [...files, 'history.ts'].map(name => readFileSync(new URL(name, import.meta.url), 'utf8'))
    expect(texts.filter(text => /from '(latchkey|.*packages\/)/.test(text))).toEqual([])
  })
})
