/** Safety, key by key: compares the final answers that clients got with what exists. */
import type { ClientEvent } from '../history.ts'
import {
  type BusinessRow,
  clientKeyOf,
  type Evidence,
  groupBy,
  type LedgerCharge,
  type ReceiptRow,
  type Violation,
} from './facts.ts'

/** Everything that is true about one key. */
interface Truth {
  readonly key: string
  readonly orders: readonly BusinessRow[]
  readonly payments: readonly BusinessRow[]
  readonly refunds: readonly BusinessRow[]
  readonly transfers: readonly BusinessRow[]
  readonly receipts: readonly ReceiptRow[]
  readonly charges: readonly LedgerCharge[]
}

export function checkAnswers(evidence: Evidence): Violation[] {
  const truths = truthsOf(evidence)
  const asked = groupBy(evidence.clients, event => event.key)
  const keys = new Set([...asked.keys(), ...truths.keys()])
  return [...keys].flatMap(key => {
    const truth = truths.get(key) ?? emptyTruth(key)
    const events = asked.get(key) ?? []
    return [
      ...twice(truth),
      ...events.flatMap(event => missing(truth, event)),
      ...unequal(key, events),
      ...misuse(key, events),
      ...acceptance(key, events),
    ]
  })
}

/** Keys with something of their own in a business table or in the ledger. */
export function executedKeys(evidence: Evidence): number {
  return truthsOf(evidence).size
}

function truthsOf({ facts, charges }: Evidence): Map<string, Truth> {
  const truths = new Map<string, Truth>()
  const add = <Name extends Exclude<keyof Truth, 'key'>>(name: Name, key: string, row: Truth[Name][number]) => {
    const truth = truths.get(key) ?? emptyTruth(key)
    truths.set(key, { ...truth, [name]: [...truth[name], row] })
  }
  for (const row of facts.orders) add('orders', row.key, row)
  for (const row of facts.payments) add('payments', row.key, row)
  for (const row of facts.refunds) add('refunds', row.key, row)
  for (const row of facts.transfers) add('transfers', row.key, row)
  for (const row of facts.receipts) add('receipts', row.key, row)
  for (const charge of charges) add('charges', clientKeyOf(charge), charge)
  return truths
}

function emptyTruth(key: string): Truth {
  return { key, orders: [], payments: [], refunds: [], transfers: [], receipts: [], charges: [] }
}

function twice({ key, ...rows }: Truth): Violation[] {
  return Object.entries(rows)
    .filter(([, found]) => found.length > 1)
    .map(([name, found]) => ({ kind: 'twice', key, detail: `${found.length} ${name}: ${JSON.stringify(found)}` }))
}

/** The row and the charge that a final answer names must exist. */
function missing(truth: Truth, { type, key, status, body = '{}', misuse: misused }: ClientEvent): Violation[] {
  if (type !== 'ok' || misused === true) return []
  const answer: Record<string, unknown> = JSON.parse(body)
  const lost = (detail: string): Violation => ({
    kind: 'lost',
    key,
    detail: `${detail}, but a client got ${body}`,
  })
  const found: Violation[] = []
  for (const [name, rows] of [
    ['order', truth.orders],
    ['payment', truth.payments],
    ['refund', truth.refunds],
    ['transfer', truth.transfers],
  ] as const) {
    if (name in answer && !rows.some(({ id }) => id === answer[name])) found.push(lost(`this ${name} has no row`))
  }
  if ('charge' in answer && !truth.charges.some(({ id }) => id === answer['charge'])) found.push(lost('no such charge'))
  if ('receipt' in answer && !truth.receipts.some(({ seq }) => seq === answer['receipt']))
    found.push(lost('no such receipt'))
  if (status === 402 && truth.charges.length > 0)
    found.push({ kind: 'charged-though-declined', key, detail: JSON.stringify(truth.charges) })
  return found
}

/** An answer marked as not stored need not be repeated. */
function unequal(key: string, events: readonly ClientEvent[]): Violation[] {
  const finals = events.filter(
    ({ type, misuse: misused, unstored }) => type === 'ok' && misused !== true && unstored !== true,
  )
  const different = new Set(finals.map(({ status, body }) => `${status} ${body}`))
  return different.size > 1 ? [{ kind: 'unequal-answers', key, detail: [...different].join(' | ') }] : []
}

function misuse(key: string, events: readonly ClientEvent[]): Violation[] {
  const answered = events.filter(({ type, misuse: misused }) => misused === true && type === 'ok')
  return answered.map(({ body = '' }) => ({ kind: 'misuse-answered', key, detail: body }))
}

/** An accepted request is one operation, however often it is sent, and invisible to other accounts. */
function acceptance(key: string, events: readonly ClientEvent[]): Violation[] {
  const accepted = new Set(events.filter(({ status }) => status === 202).map(({ body = '' }) => body))
  const strangers = events.filter(({ foreign, status }) => foreign === true && status === 200)
  return [
    ...(accepted.size > 1 ? [{ kind: 'accepted-twice', key, detail: [...accepted].join(' | ') } as const] : []),
    ...strangers.map(event => ({ kind: 'shown-to-stranger', key, detail: JSON.stringify(event) }) as const),
  ]
}
