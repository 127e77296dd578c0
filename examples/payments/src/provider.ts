/**
 * The payment provider: a process of its own, so that it can be killed in the middle of a payment. Its ledger is fsynced
 * before a charge is answered. A charge of `lostAnswerAmount` is made and never answered.
 *
 * A second port takes orders from whoever plays fate, also while the first refuses connections:
 *   GET /                              {"idempotency":true,"fault":null}
 *   PUT /fault    {"kind":"slow","ms":500,"requests":3}, or null
 *   PUT /idempotency    true or false: whether a known key gets its first charge, or is charged again
 *
 * Started by fork with the ledger's path; tells its ports to the parent and ends with it.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type Charge, type Fault, lostAnswerAmount } from './charge.ts'
import { faultSwitch, parseFault } from './provider-faults.ts'
import { openLedger } from './provider-ledger.ts'

/** A client that waits longer than this has not given up, it is gone: `late` charges then. */
const patienceMs = 60_000
const defaultDelayMs = 1_000
const listenAgainMs = 50

const ledgerPath = process.argv[2]
if (ledgerPath === undefined) throw new Error('the provider needs the path of its ledger')
const ledger = openLedger(ledgerPath)
const faults = faultSwitch()
let idempotency = true

const server = createServer(answeringErrors(handleCharge))
const control = createServer(answeringErrors(handleControl))
const [port, controlPort] = [await listen(server, 0), await listen(control, 0)]
process.send?.({ port, controlPort })
process.on('disconnect', stop)
process.on('SIGTERM', stop)
// Ctrl-C reaches the whole group; the parent decides when its provider ends.
process.on('SIGINT', () => {})

async function handleCharge(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'GET') return answer(response, 200, ledger.all())
  const key = String(request.headers['idempotency-key'] ?? '')
  const { account, amount, reference }: Omit<Charge, 'id'> = JSON.parse(await readBody(request))
  const asked = { key, account, amount, ...(reference === undefined ? {} : { reference }) }
  const fault = amount === lostAnswerAmount ? ({ kind: 'lose-response' } as const) : faults.strike()
  const known = knownCharge(key)
  switch (fault?.kind) {
    case 'refuse':
      // What was charged before under this key cannot be declined any more.
      return known ? answer(response, 201, known) : answer(response, 402, { error: 'card declined' })
    case 'slow':
      await delay(fault.ms ?? defaultDelayMs)
      return answer(response, 201, charge(asked))
    case 'late':
      await Promise.race([once(response, 'close'), delay(patienceMs, undefined, { ref: false })])
      await delay(fault.ms ?? defaultDelayMs)
      return void charge(asked)
    case 'lose-response':
      charge(asked)
      return void request.socket.destroy()
    case 'fail-after':
      charge(asked)
      return answer(response, 500, { error: 'internal error' })
    default:
      answer(response, 201, charge(asked))
  }
}

/** Looked up when the charge is made, not when the request came: the same key may have been charged meanwhile. */
function charge(asked: Omit<Charge, 'id'>): Charge {
  return knownCharge(asked.key) ?? ledger.add(asked)
}

function knownCharge(key: string): Charge | undefined {
  return idempotency ? ledger.find(key) : undefined
}

async function handleControl(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'PUT') {
    const value: unknown = JSON.parse(await readBody(request))
    if (!apply(request.url, value)) return answer(response, 400, { error: `cannot set ${request.url} to that` })
  }
  answer(response, 200, { idempotency, fault: faults.current() })
}

function apply(path: string | undefined, value: unknown): boolean {
  if (path === '/idempotency' && typeof value === 'boolean') {
    idempotency = value
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

/** On a port that was ours before, another's short connection may be in the way for a moment. */
async function listen(on: Server, wanted: number): Promise<number> {
  for (;;) {
    on.listen(wanted, '127.0.0.1')
    const failure = await once(on, 'listening').catch((error: unknown) => error)
    const address = on.address()
    if (typeof address === 'object' && address !== null) return address.port
    if (wanted === 0) throw failure
    await delay(listenAgainMs)
  }
}

function answeringErrors(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function answer(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

function stop(): void {
  ledger.close()
  process.exit(0)
}
