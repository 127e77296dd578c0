/** What a person sees at the start: lines to paste, and what to expect of each. */
import { lostAnswerAmount } from './charge.ts'

export interface Started {
  readonly url: string
  readonly store: string
  readonly directory: string
  readonly providerPid: number
}

export function startLines({ url, store, directory, providerPid }: Started): string {
  const post = (path: string, key: string, body: string, token = 'demo-acme') =>
    `curl -si ${url}${path} -H 'Authorization: Bearer ${token}' -H 'Idempotency-Key: ${key}' -H 'Content-Type: application/json' -d '${body}'`
  const get = (path: string) => `curl -s ${url}${path} -H 'Authorization: Bearer demo-acme'`
  const lost = `{"amount":${lostAnswerAmount}}`
  const settle = `{"verdict":{"kind":"happened","status":201,"json":{"charge":"ch_2","amount":${lostAnswerAmount}}},"by":"you","reason":"found in the ledger"}`
  return `
Latchkey playground at ${url}
store: ${store} · provider: pid ${providerPid}, ledger in ${directory}

1. An order. Send it twice: one order, the same answer, the second with Idempotent-Replayed: true.
   ${post('/orders', 'order-1', '{"sku":"tea"}')}
   ${get('/orders')}

2. The same key, another body: 422 key-reused, and nothing happens.
   ${post('/orders', 'order-1', '{"sku":"coffee"}')}

3. The same key, another tenant: an order of its own.
   ${post('/orders', 'order-1', '{"sku":"tea"}', 'demo-globex')}

4. A payment. Send it twice: one charge in the provider's ledger.
   ${post('/payments', 'payment-1', '{"amount":500}')}
   ${get('/payments')}

5. A payment that is charged and whose answer is lost: 504 outcome-unknown, and 409 for every retry. It is not charged again.
   ${post('/payments', 'payment-2', lost)}
   ${get('/payments')}
   Settle it by hand, with the id that the first line prints; then the retry of 5 gets the answer.
   ${get('/operator/unknown')}
   curl -s ${url}/operator/unknown/ID/settle -H 'Authorization: Bearer demo-acme' -d '${settle}'

6. Kill the provider, then pay: 500, proven not charged. Start again with --dir ${directory}, and the same key is charged once.
   kill -9 ${providerPid}
   ${post('/payments', 'payment-3', '{"amount":700}')}

Ctrl-C stops everything.
`
}
