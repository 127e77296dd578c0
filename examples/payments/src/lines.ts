/** What a person sees at the start: lines to paste, and what to expect of each. */
import { lostAnswerAmount } from './charge.ts'

export interface Started {
  readonly url: string
  readonly store: string
  readonly directory: string
  /** Absent: the provider was started by somebody else. */
  readonly providerPid: number | undefined
  /** Where the provider's faults are switched. */
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

1. An order. Send it twice: one order, the same answer, the second with Idempotent-Replayed: true.
   ${post('/orders', 'order-1', '{"sku":"tea"}')}
   ${get('/orders')}

2. The same key, another body: 422 key-reused, and nothing happens.
   ${post('/orders', 'order-1', '{"sku":"coffee"}')}

3. The same key, another tenant: an order of its own.
   ${post('/orders', 'order-1', '{"sku":"tea"}', 'demo-globex')}

4. A payment: recorded, charged, receipted through the outbox. Send it twice: one charge in the provider's ledger.
   ${post('/payments', 'payment-1', '{"amount":500}')}
   ${get('/ledger')}

5. The provider charges and loses its answer, once. Latchkey asks again with the same key: 201, and still one charge for it.
   ${fault('{"kind":"lose-response","requests":1}')}
   ${post('/payments', 'payment-2', '{"amount":600}')}
   ${get('/ledger')}

6. Kill the provider in the middle of a payment. The client hears that it is not known yet; the provider starts again after three
   seconds, a worker finishes the payment, and the retry gets its answer: charged once.
   ${fault('{"kind":"slow","ms":4000,"requests":1}')}
   ${post('/payments', 'payment-3', '{"amount":700}')} & sleep 1; kill -9 ${providerPid}; wait
   ${post('/payments', 'payment-3', '{"amount":700}')}
   ${get('/ledger')}

7. A payout at a bank that knows no keys, paid, its answer lost: 504 outcome-unknown. Nobody asks the bank again; its signed webhook tells
   within a second, a worker writes the receipt, and the retry gets its answer: paid once.
   ${fault('{"kind":"lose-response","requests":1}')}
   ${post('/payouts', 'payout-1', '{"amount":800}')}
   ${post('/payouts', 'payout-1', '{"amount":800}')}
   ${get('/payouts')}

8. A payout that the bank swallowed: no answer, no webhook, no charge. That it is not in the bank's ledger proves nothing until the quarantine
   is over (ten seconds here); then it is tried again, with another key.
   ${fault('{"kind":"swallow","requests":1}')}
   ${post('/payouts', 'payout-2', '{"amount":900}')}
   ${post('/payouts', 'payout-2', '{"amount":900}')}

9. An export, built by a worker: 202 with its status resource. Ask there for the steps, and at the end for the outcome; another tenant gets 404.
   ${post('/exports', 'export-1', '{}')}
   ${get('/operations/ID')}

10. A transfer of which nobody tells anything, paid, its answer lost: 504 outcome-unknown, and 409 for every retry. Nobody runs it again.
   ${post('/transfers', 'transfer-1', lost)}
   Settle it by hand, with the id that the first line prints; then the retry gets the answer.
   ${get('/operator/unknown')}
   curl -s ${url}/operator/unknown/ID/settle -H 'Authorization: Bearer demo-acme' -d '${settle}'

Ctrl-C stops everything.
`
}
