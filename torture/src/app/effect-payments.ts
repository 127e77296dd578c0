/** Payments and refunds on a store without transactions: what is written of the shop's own may be written again. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import {
  type DeferredOperation,
  type EffectOptions,
  type EffectsExecution,
  json,
  type LatchkeyWithoutTransactions,
  type Outcome,
  type PhasedOperation,
} from 'latchkey'
import { chargeTimeoutMs, day, die, keyOf, type MoneyOptions, type Moving } from './payments.ts'
import { type Asked, markCharged, recordEffect, upsertMoney } from './shop.ts'

interface Places {
  readonly pool: pg.Pool
}

export function effectPayments<C>(
  latchkey: LatchkeyWithoutTransactions<C>,
  { dedup, ...options }: MoneyOptions & Places & { dedup: boolean },
): PhasedOperation<Asked, C> {
  const declared = { version: 1, leaseMs: options.leaseMs, describe: keyOf, steps: 'effects' } as const
  return latchkey.phased<Asked>('payments.create', declared, (x, input) =>
    moveMoney(x, input, { ...options, dedup, table: 'payments' }),
  )
}

export function effectRefunds<C>(
  latchkey: LatchkeyWithoutTransactions<C>,
  options: MoneyOptions & Places,
): DeferredOperation<Asked, C> {
  const declared = { deadlineMs: day, leaseMs: options.leaseMs, describe: keyOf, steps: 'effects' } as const
  return latchkey.deferred<Asked>('refunds.create', declared, (x, input) =>
    moveMoney(x, input, { ...options, dedup: false, table: 'refunds' }),
  )
}

/** The shop's own tables recognise what they have: writing again changes nothing. */
const recording: EffectOptions = { timeoutMs: chargeTimeoutMs, dedup: { windowMs: day } }

async function moveMoney(
  x: EffectsExecution,
  input: Asked,
  { provider, history, table, dedup, pool }: Moving & Places,
): Promise<Outcome> {
  const { key, account, amount } = input
  const name = table === 'payments' ? 'payment' : 'refund'
  if (input.poison === true) die(history, key)
  let began = false
  const row = await x.effect(recordEffect, recording, () => {
    began = true
    return upsertMoney(pool, table, { ...input, id: x.id })
  })
  if (!began) history.write({ type: 'resumed-midway', key, detail: x.recoveryPoint ?? '' })
  const options = { timeoutMs: chargeTimeoutMs, ...(dedup ? { dedup: { windowMs: day } } : {}) }
  const answer = await x.effect('charge', options, ({ key: downstreamKey, signal }) =>
    provider.charge({ key, id: x.id, downstreamKey, dedup, account, amount, signal }),
  )
  if (answer.kind === 'declined') return json(402, { [name]: row, declined: true, nonce: randomUUID() })
  await markCharged(pool, table, { id: row, charge: answer.id })
  // Each run that gets this far creates a new nonce, so two answers for one key cannot be equal by chance.
  return json(201, { [name]: row, charge: answer.id, nonce: randomUUID() })
}
