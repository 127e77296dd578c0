/**
 * A payment in three steps: recorded, charged, receipted. After a crash between any two it is resumed, and nothing is charged twice.
 * A declined card is an answer like any other: it is stored, and a client that tries another card uses a new key.
 */
import { json, type Outcome, type PhasedExecution } from 'latchkey'
import { functionTarget, type Target } from 'latchkey/outbox'
import type { ProviderClient } from './provider-client.ts'
import type { Booking, Payment, ShopDatabase } from './shop-database.ts'

export interface PaymentInput {
  readonly account: string
  readonly amount: number
}

/** A message of the outbox. */
export interface Receipt extends Omit<Booking, 'id'> {
  readonly charge: string
}

export interface Paying<Tx> {
  readonly database: ShopDatabase<Tx>
  readonly provider: ProviderClient
}

/** The provider recognises a key for a day, so an interrupted charge is repeated within it. */
export const charging = { dedup: { windowMs: 24 * 3_600_000 }, timeoutMs: 5_000 }
/** A bank that does not recognise keys: a call without an answer must not be repeated. Short, for a playground. */
export const transferring = { timeoutMs: 2_000 }

export function pay<Tx>(x: PhasedExecution<Tx>, input: PaymentInput, paying: Paying<Tx>): Promise<Outcome> {
  return moveMoney(x, input, { ...paying, direction: 'in' })
}

/** Without an answer it is `unknown`, until the bank's webhook, its ledger or a person settles it; then the receipt is written. */
export function payOut<Tx>(x: PhasedExecution<Tx>, input: PaymentInput, paying: Paying<Tx>): Promise<Outcome> {
  return moveMoney(x, input, { ...paying, direction: 'out' })
}

async function moveMoney<Tx>(
  x: PhasedExecution<Tx>,
  { account, amount }: PaymentInput,
  { database, provider, direction }: Paying<Tx> & Pick<Payment, 'direction'>,
): Promise<Outcome> {
  const dedup = direction === 'in'
  const reference = x.id
  const id = await x.phase('record', tx => database.insertPayment(tx, { account, amount, direction, reference }))
  const answer = await x.effect('charge', dedup ? charging : transferring, ({ key, signal }) =>
    provider.charge({ key, account, amount, reference, dedup }, signal),
  )
  if ('declined' in answer) {
    await x.phase('decline', tx => database.removePayment(tx, id))
    return json(402, { declined: true, amount })
  }
  const charge = answer.id
  await x.phase('receipt', async tx => {
    await database.markCharged(tx, { id, charge })
    const payload: Receipt = { payment: id, charge, amount, account, direction }
    await x.outbox.append(tx, { topic: 'receipts', aggregate: account, payload })
  })
  return json(201, { payment: id, charge, amount })
}

/** Delivers receipts without a broker. A duplicate has the same id, so a consumer remembers the ids it has seen. */
export function receiptTarget(onReceipt: (line: string) => void): Target {
  return functionTarget(({ payload, dedupId }) => onReceipt(`receipt ${dedupId}: ${Buffer.from(payload).toString()}`), {
    name: 'receipts',
  })
}
