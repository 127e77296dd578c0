/** What to try on the playground: commands to paste, and what each of them does. Printed at the start, and shown at `GET /`. */
import { lostAnswerAmount } from './charge.ts'
import type { Bookkeeping } from './ledger/book-payments.ts'
import type { Provider } from './provider-process.ts'

export interface Started {
  readonly url: string
  readonly store: string
  /** What the store cannot carry. Undefined: it carries everything. */
  readonly leftOut: string | undefined
  readonly directory: string
  readonly provider: Pick<Provider, 'pid' | 'controlUrl'>
  /** Undefined: without a broker. */
  readonly books: Pick<Bookkeeping, 'broker' | 'ledger'> | undefined
}

export interface Guide {
  readonly url: string
  readonly about: string
  readonly steps: readonly Step[]
}

export interface Step {
  readonly says: string
  /** Commands, and sentences between them. */
  readonly does: readonly string[]
}

export function isCommand(line: string): boolean {
  return line.startsWith('curl ')
}

export function playgroundGuide({ url, store, leftOut, directory, provider, books }: Started): Guide {
  const ran = provider.pid === undefined ? 'started elsewhere' : `pid ${provider.pid}`
  const booked =
    books === undefined
      ? ''
      : `\nbroker: ${books.broker} · ledger: pid ${books.ledger.pid}, controlled at ${books.ledger.controlUrl}`
  const about = `store: ${store} · provider: ${ran}, files in ${directory}${booked}`
  const { controlUrl } = provider
  const first = leftOut === undefined ? orderSteps(url) : paymentSteps(url)
  const payouts = leftOut === undefined ? '/payouts' : '/ledger'
  const missing = leftOut === undefined ? '' : `\nLeft out, because this store has no transactions: ${leftOut}.`
  const steps = [
    ...first,
    ...moneySteps(url, controlUrl),
    ...bankSteps(url, controlUrl, payouts),
    ...ledgerSteps(url, books),
  ]
  return { url, about: about + missing, steps }
}

export const purpose =
  'A payments API whose operations happen once, however often they are asked for, and the payment provider that it calls.'

/** Nothing here needs a browser, and nothing opens one. */
const watched =
  'With a browser: open this address, and kill the provider in the middle of a payment. Without one: the commands below do the same.'

/** `secret`: lines for the person who started it, and for nobody who asks over HTTP. */
export function guideText({ url, about, steps }: Guide, secret = ''): string {
  const told = steps.map(({ says, does }, index) => [`${index + 1}. ${says}`, ...does].join('\n   '))
  return `\nLatchkey playground at ${url}\n${purpose}\n${about}\n${watched}\n${secret}\n${told.join('\n\n')}\n\nCtrl-C stops everything.\n`
}

function orderSteps(url: string): Step[] {
  const { post, get } = commandsFor(url, '')
  return [
    {
      says: 'An order. Send it twice: there is one order, and the second answer is the same with Idempotent-Replayed: true.',
      does: [post('/orders', 'order-1', '{"sku":"tea"}'), get('/orders')],
    },
    {
      says: 'The same key with another body: 422 key-reused, and nothing happens.',
      does: [post('/orders', 'order-1', '{"sku":"coffee"}')],
    },
    {
      says: 'The same key from another tenant: a separate order.',
      does: [post('/orders', 'order-1', '{"sku":"tea"}', 'demo-globex')],
    },
    {
      says: "A payment: recorded, charged, and receipted through the outbox. Send it twice: there is one charge in the provider's ledger.",
      does: [post('/payments', 'payment-1', '{"amount":500}'), get('/ledger')],
    },
  ]
}

/** The same with payments, where there are no orders. */
function paymentSteps(url: string): Step[] {
  const { post, get } = commandsFor(url, '')
  return [
    {
      says: "A payment. Send it twice: there is one charge in the provider's ledger, and the second answer is the same with Idempotent-Replayed: true.",
      does: [post('/payments', 'payment-1', '{"amount":500}'), get('/ledger')],
    },
    {
      says: 'The same key with another body: 422 key-reused, and nothing happens.',
      does: [post('/payments', 'payment-1', '{"amount":501}')],
    },
    {
      says: 'The same key from another tenant: a separate payment.',
      does: [post('/payments', 'payment-1', '{"amount":500}', 'demo-globex')],
    },
  ]
}

function moneySteps(url: string, controlUrl: string): Step[] {
  const { post, get, fault } = commandsFor(url, controlUrl)
  const payment3 = post('/payments', 'payment-3', '{"amount":700}')
  return [
    {
      says: 'The provider charges, but its answer is lost. Latchkey repeats the call with the same key: 201, and still one charge.',
      does: [
        fault('{"kind":"lose-response","requests":1}'),
        post('/payments', 'payment-2', '{"amount":600}'),
        get('/ledger'),
      ],
    },
    {
      says: `Kill the provider in the middle of a payment. The client gets 504 outcome-unknown. The provider restarts after three seconds, a worker
   finishes the payment, and the retry gets the answer: charged once.`,
      does: [
        fault('{"kind":"slow","ms":4000,"requests":1}'),
        `${payment3} & sleep 1; kill -9 $(curl -s ${controlUrl}/pid); wait`,
        payment3,
        get('/ledger'),
      ],
    },
  ]
}

/** `payouts`: where they are seen. */
function bankSteps(url: string, controlUrl: string, payouts: string): Step[] {
  const { post, get, fault } = commandsFor(url, controlUrl)
  const settle = `{"verdict":{"kind":"happened","status":201,"json":{"transfer":"CHARGE","amount":${lostAnswerAmount}}},"by":"you","reason":"found in the ledger"}`
  return [
    {
      says: `A payout at a bank that does not recognise keys. The bank pays, but its answer is lost: 504 outcome-unknown. The call is not repeated. The
   bank's signed webhook arrives within a second, a worker finishes the payout, and the retry gets the answer: paid once.`,
      does: [
        fault('{"kind":"lose-response","requests":1}'),
        post('/payouts', 'payout-1', '{"amount":800}'),
        post('/payouts', 'payout-1', '{"amount":800}'),
        get(payouts),
      ],
    },
    {
      says: `A payout request that never takes effect: no answer, no webhook, no charge. Its absence from the bank's ledger proves nothing until the
   quarantine is over (ten seconds by default). Then it is retried with a new key.`,
      does: [
        fault('{"kind":"swallow","requests":1}'),
        post('/payouts', 'payout-2', '{"amount":900}'),
        post('/payouts', 'payout-2', '{"amount":900}'),
      ],
    },
    {
      says: 'An export, built by a worker: 202 with a status resource. Poll it (replace ID) for the steps and the outcome. Another tenant gets 404.',
      does: [post('/exports', 'export-1', '{}'), get('/operations/ID')],
    },
    {
      says: `A transfer that has neither webhook nor look-up. It is paid, but the answer is lost: 504 outcome-unknown, then 409 for every retry. It is
   never run again.`,
      does: [
        post('/transfers', 'transfer-1', `{"amount":${lostAnswerAmount}}`),
        'Settle it by hand, with the id that the next command prints (replace ID) and the charge that the ledger shows (replace CHARGE). Then the',
        'retry gets the answer.',
        get('/operator/unknown'),
        get('/ledger'),
        `curl -s ${url}/operator/unknown/ID/settle -H 'Authorization: Bearer demo-acme' -d '${settle}'`,
      ],
    },
  ]
}

function ledgerSteps(url: string, books: Started['books']): Step[] {
  if (books === undefined) return []
  const { controlUrl } = books.ledger
  const { post, get, fault } = commandsFor(url, controlUrl)
  const payment4 = post('/payments', 'payment-4', '{"amount":1000}')
  return [
    {
      says: 'The ledger, a process of its own, takes every payment and payout from the broker and books it: one booking each.',
      does: [get('/bookings')],
    },
    {
      says: `Kill the ledger between a booking and its acknowledgement. It restarts after a second, and the broker delivers the message again five
   seconds after the first time: latchkey reserve.replay is printed, and there is still one booking.`,
      does: [
        fault('{"kind":"late-ack","ms":20000,"messages":1}'),
        `${payment4}; sleep 2; kill -9 $(curl -s ${controlUrl}/pid)`,
        get('/bookings'),
      ],
    },
  ]
}

function commandsFor(url: string, controlUrl: string) {
  return {
    post: (path: string, key: string, body: string, token = 'demo-acme') =>
      `curl -si ${url}${path} -H 'Authorization: Bearer ${token}' -H 'Idempotency-Key: ${key}' -H 'Content-Type: application/json' -d '${body}'`,
    get: (path: string) => `curl -s ${url}${path} -H 'Authorization: Bearer demo-acme'`,
    fault: (body: string) => `curl -s -X PUT ${controlUrl}/fault -d '${body}'`,
  }
}
