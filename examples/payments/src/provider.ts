/**
 * The payment provider: a separate process, so that it can be killed in the middle of a payment. Its ledger is fsynced
 * before a charge is answered. A charge of `lostAnswerAmount` is made and never answered.
 *
 * A second port takes control requests, even while the first refuses connections:
 *   GET /                              {"idempotency":true,"fault":null,"webhook":null,"books":true}
 *   GET /charges, GET /asked           the ledger; the last requests for charges, whatever their result
 *   GET /pid                           its process id, which is another one after a restart
 *   PUT /fault    {"kind":"slow","ms":500,"requests":3}, or null
 *   PUT /idempotency    true or false: whether a known key gets its first answer, or is charged again
 *   PUT /webhook    {"url":"http://…","secret":"whsec_…","delayMs":0}, or null: where webhooks are sent
 *   PUT /books    true or false: whether the shop may look charges up
 *
 * A charge without an idempotency key is made for every request; `key` in the body is then only information. The shop may
 * look charges up by it, `GET /charges?key=…`, and read the whole ledger, `GET /charges`.
 *
 * Started by fork with the ledger's path and its two ports, 0 for any. It reports its ports to the parent, and exits with it.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type AskedFor, type Charge, type Fault, lostAnswerAmount, type WebhookTarget } from './charge.ts'
import { answer, answeringErrors, listen, readBody } from './loopback-server.ts'
import { faultSwitch, parseFault } from './provider-faults.ts'
import { openLedger } from './provider-ledger.ts'
import { parseWebhookTarget, sendWebhook } from './provider-webhooks.ts'

/** `late` charges after this at the latest: a client that waited so long is gone. */
const patienceMs = 60_000
const defaultDelayMs = 1_000
const askedMax = 1_000

const ledgerPath = process.argv[2]
if (ledgerPath === undefined) throw new Error('the provider needs the path of its ledger')
const ledger = openLedger(ledgerPath)
const faults = faultSwitch()
let idempotency = true
let webhook: WebhookTarget | null = null
let books = true
const askedFor: AskedFor[] = []

const server = createServer(answeringErrors(handleCharge))
const control = createServer(answeringErrors(handleControl))
const [port, controlPort] = [await listen(server, wantedPort(3)), await listen(control, wantedPort(4))]
process.send?.({ port, controlPort })
process.on('disconnect', stop)
process.on('SIGTERM', stop)
// Ctrl-C reaches the whole process group; the parent decides when its provider exits.
process.on('SIGINT', () => {})

async function handleCharge(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'GET') {
    return books ? answer(response, 200, find(request.url)) : answer(response, 503, { error: 'the books are closed' })
  }
  const dedupKey = request.headers['idempotency-key']
  const { key, account, amount, reference }: Omit<Charge, 'id'> = JSON.parse(await readBody(request))
  const asked = {
    key,
    account,
    amount,
    ...(reference === undefined ? {} : { reference }),
    dedup: dedupKey !== undefined,
  }
  const fault = amount === lostAnswerAmount ? ({ kind: 'lose-response' } as const) : faults.strike()
  const known = knownCharge(asked)
  remember(asked)
  switch (fault?.kind) {
    case 'refuse':
      // A key that was charged can no longer be declined.
      if (known === undefined && bindsKey(asked)) ledger.decline(key)
      return answerCharge(response, known)
    case 'slow':
      await delay(fault.ms ?? defaultDelayMs)
      return answerCharge(response, charge(asked))
    case 'hold': {
      const made = charge(asked)
      await delay(fault.ms ?? defaultDelayMs)
      return answerCharge(response, made)
    }
    case 'late':
      await Promise.race([once(response, 'close'), delay(patienceMs, undefined, { ref: false })])
      await delay(fault.ms ?? defaultDelayMs)
      return void charge(asked)
    case 'swallow':
      return
    case 'lose-response':
      charge(asked)
      return void request.socket.destroy()
    case 'fall':
      charge(asked)
      return void apply('/fault', { ...fault, kind: 'down' })
    case 'fail-after':
      charge(asked)
      return answer(response, 500, { error: 'internal error' })
    default:
      answerCharge(response, charge(asked))
  }
}

function find(url = ''): readonly Charge[] {
  const wanted = new URL(url, 'http://provider').searchParams.get('key')
  return wanted === null ? ledger.all() : ledger.all().filter(({ key }) => key === wanted)
}

function remember(asked: AskedFor): void {
  askedFor.push(asked)
  if (askedFor.length > askedMax) askedFor.shift()
}

/**
 * Looked up when the charge is made, not when the request arrived: the key may have been charged or declined meanwhile.
 * Undefined: declined.
 */
function charge({ dedup, ...asked }: AskedFor): Charge | undefined {
  const known = knownCharge({ dedup, key: asked.key })
  if (known !== undefined) return known
  if (bindsKey({ dedup }) && ledger.isDeclined(asked.key)) return undefined
  const made = ledger.add(asked)
  void sendWebhook(made, () => webhook)
  return made
}

function knownCharge({ dedup, key }: Pick<AskedFor, 'dedup' | 'key'>): Charge | undefined {
  return bindsKey({ dedup }) ? ledger.find(key) : undefined
}

/** Whether all requests with this key get one answer. */
function bindsKey({ dedup }: Pick<AskedFor, 'dedup'>): boolean {
  return idempotency && dedup
}

function answerCharge(response: ServerResponse, made: Charge | undefined): void {
  if (made === undefined) answer(response, 402, { error: 'card declined' })
  else answer(response, 201, made)
}

async function handleControl(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'PUT') {
    const value: unknown = JSON.parse(await readBody(request))
    if (!apply(request.url, value)) return answer(response, 400, { error: `cannot set ${request.url} to that` })
  }
  if (request.url === '/charges') return answer(response, 200, ledger.all())
  if (request.url === '/asked') return answer(response, 200, askedFor)
  if (request.url === '/pid') return answer(response, 200, process.pid)
  answer(response, 200, { idempotency, fault: faults.current(), webhook, books })
}

function apply(path: string | undefined, value: unknown): boolean {
  if (path === '/idempotency' && typeof value === 'boolean') {
    idempotency = value
    return true
  }
  if (path === '/books' && typeof value === 'boolean') {
    books = value
    return true
  }
  const target = path === '/webhook' ? parseWebhookTarget(value) : undefined
  if (target !== undefined) {
    webhook = target
    return true
  }
  const fault = path === '/fault' ? parseFault(value) : undefined
  if (fault === undefined) return false
  faults.set(fault)
  if (fault?.kind === 'down') goDown(fault)
  else if (!server.listening) void listen(server, port)
  return true
}

function goDown(fault: Fault): void {
  server.close()
  server.closeAllConnections()
  if (fault.ms === undefined) return
  setTimeout(() => {
    if (faults.current() !== fault) return
    faults.set(null)
    void listen(server, port)
  }, fault.ms)
}

function wantedPort(argument: number): number {
  return Number(process.argv[argument] ?? 0)
}

function stop(): void {
  ledger.close()
  process.exit(0)
}
