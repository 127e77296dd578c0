/** The text printed at the start: commands to paste, and what each of them does. */
import { lostAnswerAmount } from './charge.ts'

export interface Started {
  readonly url: string
  readonly store: string
  readonly directory: string
  /** Absent: another program started the provider. */
  readonly providerPid: number | undefined
  /** The address that switches the provider's faults. */
  readonly controlUrl: string
}

export function startLines({ url, store, directory, providerPid, controlUrl }: Started): string {
  const post = (path: string, key: string, body: string, token = 'demo-acme') =>
    `curl -si ${url}${path} -H 'Authorization: Bearer ${token}' -H 'Idempotency-Key: ${key}' -H 'Content-Type: application/json' -d '${body}'`
  const get = (path: string) => `curl -s ${url}${path} -H 'Authorization: Bearer demo-acme'`
  const fault = (body: string) => `curl -s -X PUT ${controlUrl}/fault -d '${body}'`
  const lost = `{"amount":${lostAnswerAmount}}`
  const settle = `{"verdict":{"kind":"happened","status":201,"json":{"transfer":"ch_6","amount":${lostAnswerAmount}}},"by":"you","reason":"found in the ledger"}`
  return `
Latchkey playground at ${url}
store: ${store} · provider: ${providerPid === undefined ? 'started elsewhere' : `pid ${providerPid}`}, files in ${directory}

1. An order. Send it twice: there is one order, and the second answer is the same with Idempotent-Replayed: true.
   ${post('/orders', 'order-1', '{"sku":"tea"}')}
   ${get('/orders')}

2. The same key with another body: 422 key-reused, and nothing happens.
   ${post('/orders', 'order-1', '{"sku":"coffee"}')}

3. The same key from another tenant: a separate order.
   ${post('/orders', 'order-1', '{"sku":"tea"}', 'demo-globex')}

4. A payment: recorded, charged, and receipted through the outbox. Send it twice: there is one charge in the provider's ledger.
   ${post('/payments', 'payment-1', '{"amount":500}')}
   ${get('/ledger')}

5. The provider charges, but its answer is lost. Latchkey repeats the call with the same key: 201, and still one charge.
   ${fault('{"kind":"lose-response","requests":1}')}
   ${post('/payments', 'payment-2', '{"amount":600}')}
   ${get('/ledger')}

6. Kill the provider in the middle of a payment. The client gets 504 outcome-unknown. The provider restarts after three seconds, a worker
   finishes the payment, and the retry gets the answer: charged once.
   ${fault('{"kind":"slow","ms":4000,"requests":1}')}
   ${post('/payments', 'payment-3', '{"amount":700}')} & sleep 1; kill -9 ${providerPid}; wait
   ${post('/payments', 'payment-3', '{"amount":700}')}
   ${get('/ledger')}

7. A payout at a bank that does not recognise keys. The bank pays, but its answer is lost: 504 outcome-unknown. The call is not repeated. The
   bank's signed webhook arrives within a second, a worker writes the receipt, and the retry gets the answer: paid once.
   ${fault('{"kind":"lose-response","requests":1}')}
   ${post('/payouts', 'payout-1', '{"amount":800}')}
   ${post('/payouts', 'payout-1', '{"amount":800}')}
   ${get('/payouts')}

8. A payout request that never takes effect: no answer, no webhook, no charge. Its absence from the bank's ledger proves nothing until the
   quarantine is over (ten seconds by default). Then it is retried with a new key.
   ${fault('{"kind":"swallow","requests":1}')}
   ${post('/payouts', 'payout-2', '{"amount":900}')}
   ${post('/payouts', 'payout-2', '{"amount":900}')}

9. An export, built by a worker: 202 with a status resource. Poll it (replace ID) for the steps and the outcome. Another tenant gets 404.
   ${post('/exports', 'export-1', '{}')}
   ${get('/operations/ID')}

10. A transfer that has neither webhook nor look-up. It is paid, but the answer is lost: 504 outcome-unknown, then 409 for every retry. It is
   never run again.
   ${post('/transfers', 'transfer-1', lost)}
   Settle it by hand, with the id that the next command prints. Then the retry gets the answer.
   ${get('/operator/unknown')}
   curl -s ${url}/operator/unknown/ID/settle -H 'Authorization: Bearer demo-acme' -d '${settle}'

Ctrl-C stops everything.
`
}
