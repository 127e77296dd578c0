/** A payment in three steps: recorded, charged, receipted. A crash between any two is resumed, and nothing is charged twice. */
import { json, type Outcome, type PhasedExecution } from 'latchkey'
import { functionTarget, type Target } from 'latchkey/outbox'
import type { Provider } from './provider-process.ts'
import type { ShopDatabase } from './shop-database.ts'

export interface PaymentInput {
  readonly account: string
  readonly amount: number
}

/** The provider recognises a key for a day: an interrupted charge is asked for again within it. */
const charging = { dedup: { windowMs: 24 * 3_600_000 }, timeoutMs: 5_000 }

export async function pay<Tx>(
  x: PhasedExecution<Tx>,
  { account, amount }: PaymentInput,
  { database, provider }: { database: ShopDatabase<Tx>; provider: Provider },
): Promise<Outcome> {
  const id = await x.phase('record', tx => database.insertPayment(tx, { account, amount }))
  const { id: charge } = await x.effect('charge', charging, ({ key, signal }) =>
    provider.charge({ key, account, amount }, signal),
  )
  await x.phase('receipt', async tx => {
    await database.markCharged(tx, { id, charge })
    await x.outbox.append(tx, { topic: 'receipts', aggregate: account, payload: { payment: id, charge, amount } })
  })
  return json(201, { payment: id, charge, amount })
}

/** Where receipts go. A copy carries the same id: a consumer remembers the ids it has seen. */
export function receiptTarget(onReceipt: (line: string) => void): Target {
  return functionTarget(({ payload, dedupId }) => onReceipt(`receipt ${dedupId}: ${Buffer.from(payload).toString()}`), {
    name: 'receipts',
  })
}
