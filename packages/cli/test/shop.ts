/** An application with every kind of trouble: what the commands are tried on. Also the application of a configuration. */
import { setTimeout as delay } from 'node:timers/promises'
import {
  createLatchkey,
  type FullStore,
  json,
  type Latchkey,
  outcomeUnknown,
  silentTelemetry,
  singleTenant,
} from 'latchkey'
import { inbox } from 'latchkey/inbox'
import { createRelay, functionTarget } from 'latchkey/outbox'
import { createReconciler } from 'latchkey/reconcile'

/** What the provider says to a look-up; by default it cannot tell. */
export type Asked = (
  key: string,
) => { readonly kind: 'happened'; readonly value: { readonly id: string } } | { readonly kind: 'still-unknown' }

export function openShop<Tx>(store: FullStore<Tx>, asked: Asked = () => ({ kind: 'still-unknown' })) {
  const latchkey = createLatchkey<Tx>({ store, scope: singleTenant, telemetry: silentTelemetry, maintenance: false })
  const refund = latchkey.guarded('refunds.create', { onFailure: 'hold', describe: () => 'a refund' })
  /** Its charge gets no answer, so it ends as unknown, with an effect open. */
  const pay = latchkey.phased(
    'payments.create',
    { version: 1 },
    async (x, input: { amount: number; reference?: string }) => {
      if (input.reference !== undefined) await x.reference(input.reference)
      const charge = await x.effect('charge', { timeoutMs: 5_000 }, async (): Promise<{ id: string }> => {
        throw outcomeUnknown('no answer came')
      })
      await x.phase('receipt', async tx => {
        await x.outbox.append(tx, { topic: 'receipts', payload: charge })
        return null
      })
      return json(201, charge)
    },
  )
  const reconciler = createReconciler(latchkey)
  reconciler.register(pay, { lookup: ({ key }) => asked(key), backoffMs: [60_000] })

  const unknown = async (run: Promise<unknown>) => {
    await run.then(
      () => {
        throw new Error('it ended, and should be unknown')
      },
      () => undefined,
    )
  }
  return {
    latchkey,
    reconciler,
    /** The id of a row of guarded work whose outcome is unknown. */
    async unknownRefund(key: string, scope = 'acme') {
      await unknown(refund.run({ scope, key, input: 1 }, async () => Promise.reject(new Error('connection reset'))))
      return latchkey.identify({ scope, operation: 'refunds.create', key })
    },
    /** The id of a row of phased work whose charge is in doubt. */
    async unknownPayment(key: string, { scope = 'acme', reference }: { scope?: string; reference?: string } = {}) {
      const input = { amount: 5_000, ...(reference === undefined ? {} : { reference }) }
      await unknown(pay.run({ scope, key, input }))
      return latchkey.identify({ scope, operation: 'payments.create', key })
    },
    /** As a reconciler does that has asked often enough: the row is parked. */
    async giveUp(id: string) {
      const { reconciliation } = store
      const asking = { operation: 'payments.create', firstInMs: 0, leaseMs: 60_000, limit: 1_000 }
      for (const lookup of await reconciliation.lookups(asking)) {
        if (lookup.id === id) await reconciliation.giveUp(lookup, 'look-ups-exhausted')
        else await reconciliation.postpone(lookup, 0)
      }
    },
    ...givenUp(store, latchkey),
    async completedRefund(key: string, scope = 'acme') {
      await refund.run({ scope, key, input: 1 }, async () => ({ id: 're_1' }))
      return latchkey.identify({ scope, operation: 'refunds.create', key })
    },
  }
}

/** Messages that nobody takes. */
function givenUp<Tx>(store: FullStore<Tx>, latchkey: Latchkey<Tx, unknown>) {
  const book = latchkey.atomic('orders.book')
  const orders = inbox(latchkey.guarded('orders.take', { onFailure: 'rerun' }), { consumer: 'billing', attemptsMax: 1 })
  return {
    /** A message that no target takes, and that its relay has given up. */
    async parkedMessage(topic: string) {
      await book.run({ scope: 'acme', key: topic, input: 1 }, async ({ tx }) => {
        await latchkey.outbox.append(tx, { topic, payload: { order: 1 } })
        return 1
      })
      const targets = { '*': functionTarget(async () => Promise.reject(new Error('no such subject'))) }
      const relay = createRelay({ outbox: store.outbox, targets, attemptsMax: 1, telemetry: silentTelemetry })
      const isParked = async () =>
        (await store.outbox.parked({ limit: 1_000 })).some(message => message.topic === topic)
      // Transactions of other suites on the same server may hold it back for a while.
      for (let turn = 0; turn < 500 && !(await isParked()); turn += 1)
        if ((await relay.relayOnce()).kind === 'idle') await delay(50)
    },
    /** A message that its consumer has given up. */
    async parkedDelivery(id: string) {
      const message = { source: 'orders', id, type: 'order.placed', data: { order: 1 } }
      return orders.receive(message, async () => Promise.reject(new Error('no such customer')))
    },
  }
}

export type Shop = ReturnType<typeof openShop>
