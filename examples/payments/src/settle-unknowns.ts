/** How the shop settles a payment whose answer was lost: by webhook, by look-up, by comparing the ledgers. */
import type { PhasedOperation } from 'latchkey'
import { createReconciler, type Reconciler, standardWebhooks } from 'latchkey/reconcile'
import type { WorkersHost } from 'latchkey/workers'
import type { Charge, ChargeEvent } from './charge.ts'
import type { PaymentInput } from './pay.ts'
import type { ProviderClient } from './provider-client.ts'
import type { Payment, ShopDatabase } from './shop-database.ts'

export interface Settling<Tx> {
  readonly latchkey: WorkersHost<Tx>
  readonly payments: readonly PhasedOperation<PaymentInput, never>[]
  /** Absent: there are no rows of the shop to compare the provider's ledger with. */
  readonly database?: ShopDatabase<Tx>
  readonly provider: ProviderClient
  readonly webhookSecret: string
  /** How long "not found" at the provider proves nothing. Seconds here; minutes at a real bank. */
  readonly quarantineMs: number
}

/** A real shop waits 30 s, minutes, hours between two look-ups; a person at a playground does not. */
const backoffMs = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 120_000]
const compareEveryMs = 60_000
const pageSize = 100

export function settleUnknowns<Tx>(settling: Settling<Tx>): {
  reconcile: Reconciler
  onWebhook(request: Request): Promise<Response>
} {
  const { latchkey, payments, database, provider, webhookSecret, quarantineMs } = settling
  const reconcile = createReconciler(latchkey)
  for (const operation of payments) {
    reconcile.register(operation, {
      quarantineMs,
      backoffMs,
      async lookup({ key, signal }) {
        const [charge] = await provider.find(key, signal)
        return charge === undefined ? { kind: 'never-happened' } : { kind: 'happened', value: charge }
      },
    })
  }
  const onWebhook = reconcile.webhook<ChargeEvent>({
    name: 'provider',
    verify: standardWebhooks({ secrets: [webhookSecret] }),
    evidence: ({ data }) => ({ downstreamKey: data.key, verdict: { kind: 'happened', value: data } }),
  })
  if (database !== undefined) compareLedgers(reconcile, database, provider)
  return { reconcile, onWebhook }
}

function compareLedgers<Tx>(reconcile: Reconciler, database: ShopDatabase<Tx>, provider: ProviderClient): void {
  reconcile.ledger<Payment, Charge>('provider', {
    everyMs: compareEveryMs,
    ours: () => ourPayments(database),
    theirs: () => theirCharges(provider),
    same: (payment, charge) => payment.charge === charge.id && payment.amount === charge.amount,
    prove: ({ ours, theirs }) =>
      ours !== undefined && theirs !== undefined && ours.charge === null
        ? { downstreamKey: theirs.key, verdict: { kind: 'happened', value: theirs } }
        : undefined,
  })
}

async function* ourPayments<Tx>(database: ShopDatabase<Tx>): AsyncGenerator<{ key: string; value: Payment }> {
  for (let after = ''; ;) {
    const page = await database.paymentsAfter(after, pageSize)
    for (const payment of page) yield { key: payment.reference, value: payment }
    const last = page.at(-1)
    if (last === undefined) return
    after = last.reference
  }
}

/** The provider lists its charges in the order they were made; a real one exports them sorted. Transfers have no reference. */
async function* theirCharges(provider: ProviderClient): AsyncGenerator<{ key: string; value: Charge }> {
  const charges = (await provider.charges()).flatMap(value =>
    value.reference === undefined ? [] : [{ key: value.reference, value }],
  )
  yield* charges.sort((left, right) => (left.key < right.key ? -1 : 1))
}
