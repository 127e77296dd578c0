/** The payment of the playground, as phased work: recorded, charged, its receipt sent through the outbox. A refund is the same, deferred. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import {
  type DeferredOperation,
  json,
  type Latchkey,
  type Outcome,
  type PhasedExecution,
  type PhasedOperation,
} from 'latchkey'
import type { AppEvent, History } from '../history.ts'
import type { ProviderClient } from './provider-client.ts'
import { type Asked, insertMoney, insertReceipt, markCharged, type MoneyTable } from './shop.ts'

export interface MoneyOptions {
  readonly provider: ProviderClient
  readonly leaseMs: number
  readonly history: History<AppEvent>
}

export interface Moving extends MoneyOptions {
  readonly table: MoneyTable
  /** Whether the provider recognises the downstream key. */
  readonly dedup: boolean
}

export const day = 24 * 3_600_000
/** Short, so that a call to a slow provider is abandoned soon. */
export const chargeTimeoutMs = 1_000

export function paymentsOperation<C>(
  latchkey: Latchkey<pg.PoolClient, C>,
  { dedup, ...options }: MoneyOptions & { dedup: boolean },
): PhasedOperation<Asked, C> {
  const declared = { version: 1, leaseMs: options.leaseMs, describe: keyOf }
  return latchkey.phased<Asked>('payments.create', declared, (x, input) =>
    moveMoney(x, input, { ...options, dedup, table: 'payments' }),
  )
}

/** At a bank that never recognises keys, so that there is always an unknown to settle. */
export function refundsOperation<C>(
  latchkey: Latchkey<pg.PoolClient, C>,
  options: MoneyOptions,
): DeferredOperation<Asked, C> {
  const declared = { deadlineMs: day, leaseMs: options.leaseMs, describe: keyOf }
  return latchkey.deferred<Asked>('refunds.create', declared, (x, input) =>
    moveMoney(x, input, { ...options, dedup: false, table: 'refunds' }),
  )
}

async function moveMoney(
  x: PhasedExecution<pg.PoolClient>,
  input: Asked,
  { provider, history, table, dedup }: Moving,
): Promise<Outcome> {
  const { key, account, amount } = input
  const name = table === 'payments' ? 'payment' : 'refund'
  if (input.poison === true) die(history, key)
  let began = false
  const row = await x.phase('record', tx => {
    began = true
    return insertMoney(tx, table, { ...input, id: x.id })
  })
  if (!began) history.write({ type: 'resumed-midway', key, detail: x.recoveryPoint ?? '' })
  const options = { timeoutMs: chargeTimeoutMs, ...(dedup ? { dedup: { windowMs: day } } : {}) }
  const answer = await x.effect('charge', options, ({ key: downstreamKey, signal }) =>
    provider.charge({ key, id: x.id, downstreamKey, dedup, account, amount, signal }),
  )
  if (answer.kind === 'declined') return json(402, { [name]: row, declined: true, nonce: randomUUID() })
  const receipt = await x.phase('receipt', async tx => {
    await markCharged(tx, table, { id: row, charge: answer.id })
    const seq = await insertReceipt(tx, input)
    await x.outbox.append(tx, { topic: 'receipts', aggregate: account, payload: { key, account, seq } })
    return seq
  })
  // Each run that gets this far creates a new nonce, so two answers for one key cannot be equal by chance.
  return json(201, { [name]: row, charge: answer.id, receipt, nonce: randomUUID() })
}

/** A handler that kills its process, every time. */
export function die(history: History<AppEvent>, key: string): void {
  history.write({ type: 'poisoned', key })
  process.kill(process.pid, 'SIGKILL')
}

export function keyOf(input: unknown): string {
  return typeof input === 'object' && input !== null ? String(Reflect.get(input, 'key')) : ''
}
