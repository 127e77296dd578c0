/** A webhook that settles a payment whose answer was lost. */
import { createHmac } from 'node:crypto'
import { json, outcomeUnknown } from 'latchkey'
import { createReconciler, standardWebhooks } from 'latchkey/reconcile'
import { expectStatus, openLatchkey, report } from '../flow.ts'

const key32 = Buffer.alloc(32, 7)
const secret = `whsec_${key32.toString('base64')}`

await report(async databaseUrl => {
  const { latchkey, close } = await openLatchkey(databaseUrl)
  const payments = latchkey.phased<{ amount: number }>('payments.settle', { version: 1 }, async x => {
    const charge = await x.effect('charge', { timeoutMs: 1_000 }, async () => {
      throw outcomeUnknown(new Error('the answer was lost'))
    })
    return json(201, charge)
  })
  const reconcile = createReconciler(latchkey)
  const hook = reconcile.webhook<{ row: string }>({
    name: 'bank',
    verify: standardWebhooks({ secrets: [secret] }),
    evidence: ({ row }) => ({ id: row, effect: 'charge', verdict: { kind: 'happened', value: { id: 'ch_1' } } }),
  })
  return {
    async prepare(key) {
      await payments.run({ scope: 'acme', key, input: { amount: 100 } }).catch(() => undefined)
    },
    async request(key) {
      const row = latchkey.identify({ scope: 'acme', operation: 'payments.settle', key })
      expectStatus(await hook(signed(key, JSON.stringify({ row }))), 200)
    },
    close,
  }
})

function signed(id: string, body: string): Request {
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const digest = createHmac('sha256', key32).update(`${id}.${timestamp}.${body}`).digest('base64')
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${digest}` }
  return new Request('http://127.0.0.1/hooks/bank', { method: 'POST', headers, body })
}
