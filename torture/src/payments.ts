/** The payment of the playground, as phased work: recorded, charged, its receipt sent through the outbox. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { json, type Latchkey, type PhasedOperation } from 'latchkey'
import type { AppEvent, History } from './history.ts'
import { charge } from './provider-client.ts'
import { type Asked, insertPayment, insertReceipt } from './shop.ts'

export interface PaymentOptions {
  readonly providerUrl: string
  readonly dedup: boolean
  readonly leaseMs: number
  readonly history: History<AppEvent>
}

const day = 24 * 3_600_000
/** Short, so that a late provider is given up soon. */
const chargeTimeoutMs = 1_000

export function paymentsOperation<C>(
  latchkey: Latchkey<pg.PoolClient, C>,
  { providerUrl, dedup, leaseMs, history }: PaymentOptions,
): PhasedOperation<Asked, C> {
  const options = { timeoutMs: chargeTimeoutMs, ...(dedup ? { dedup: { windowMs: day } } : {}) }
  return latchkey.phased<Asked>('payments.create', { version: 1, leaseMs, describe: keyOf }, async (x, input) => {
    const { key, account, amount } = input
    if (input.poison === true) die(history, key)
    let began = false
    const payment = await x.phase('record', tx => {
      began = true
      return insertPayment(tx, input)
    })
    if (!began) history.write({ type: 'resumed-midway', key, detail: x.recoveryPoint ?? '' })
    const answer = await x.effect('charge', options, call =>
      charge({
        url: providerUrl,
        idempotencyKey: call.key,
        account,
        amount,
        reference: key,
        signal: call.signal,
      }),
    )
    if (answer.kind === 'declined') return json(402, { payment, declined: true, nonce: randomUUID() })
    const receipt = await x.phase('receipt', async tx => {
      const seq = await insertReceipt(tx, input)
      await x.outbox.append(tx, { topic: 'receipts', aggregate: account, payload: { key, account, seq } })
      return seq
    })
    // The nonce is made anew by each run that gets this far: two answers for one key cannot look alike by chance.
    return json(201, { payment, charge: answer.id, receipt, nonce: randomUUID() })
  })
}

/** A handler that takes its process with it, every time. */
function die(history: History<AppEvent>, key: string): void {
  history.write({ type: 'poisoned', key })
  process.kill(process.pid, 'SIGKILL')
}

export function keyOf(input: unknown): string {
  return typeof input === 'object' && input !== null ? String(Reflect.get(input, 'key')) : ''
}
