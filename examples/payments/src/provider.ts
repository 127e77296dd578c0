/**
 * The payment provider: a process of its own, so that it can be killed in the middle of a payment. Its ledger is a file to which
 * each charge is appended and fsynced before it is answered. A charge of `lostAnswerAmount` is made and never answered.
 *
 * Started by fork with the ledger's path; tells its port to the parent and ends with it.
 */
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Charge, lostAnswerAmount } from './charge.ts'

const ledgerPath = process.argv[2]
if (ledgerPath === undefined) throw new Error('the provider needs the path of its ledger')
const charges = readLedger(ledgerPath)
const ledger = openSync(ledgerPath, 'a')

const server = createServer((request, response) => {
  handle(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port })
})
process.on('disconnect', stop)
process.on('SIGTERM', stop)
// Ctrl-C reaches the whole group; the parent decides when its provider ends.
process.on('SIGINT', () => {})

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'GET') return answer(response, 200, charges)
  const key = String(request.headers['idempotency-key'] ?? '')
  const { account, amount }: { account: string; amount: number } = JSON.parse(await readBody(request))
  const charge = charges.find(known => known.key === key) ?? makeCharge({ key, account, amount })
  if (amount === lostAnswerAmount) return void request.socket.destroy()
  answer(response, 201, charge)
}

function makeCharge(asked: Omit<Charge, 'id'>): Charge {
  const charge = { id: `ch_${charges.length + 1}`, ...asked }
  appendFileSync(ledger, `${JSON.stringify(charge)}\n`)
  fsyncSync(ledger)
  charges.push(charge)
  return charge
}

function readLedger(path: string): Charge[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter(line => line !== '').map((line): Charge => JSON.parse(line))
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
  closeSync(ledger)
  process.exit(0)
}
