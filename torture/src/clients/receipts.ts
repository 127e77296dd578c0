/** The consumer of receipts: records every arrival, and randomly fails or loses its answer, so that the message is delivered again. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type History, openHistory, type ReceiptEvent } from '../history.ts'
import type { Random } from '../random.ts'

export interface Receipts {
  readonly url: string
  /** From now on every delivery is accepted. */
  calm(): void
  close(): Promise<void>
}

const failures = 0.01
const losses = 0.01

export async function startReceipts(directory: string, random: Random): Promise<Receipts> {
  const history = openHistory<ReceiptEvent>(directory, 'receipts')
  let calm = false
  const draw = (): ReceiptEvent['answered'] => {
    if (calm) return 'accepted'
    if (random.chance(failures)) return 'failed'
    return random.chance(losses) ? 'lost' : 'accepted'
  }
  const server = createServer((request, response) => {
    receive(request, history, draw()).then(
      answered => answer(response, answered),
      () => response.destroy(),
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // listening on TCP
  return {
    url: `http://127.0.0.1:${port}/receipts`,
    calm() {
      calm = true
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function receive(
  request: IncomingMessage,
  history: History<ReceiptEvent>,
  answered: ReceiptEvent['answered'],
): Promise<ReceiptEvent['answered']> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { account, seq, key }: { account: string; seq: number; key: string } = JSON.parse(
    Buffer.concat(chunks).toString(),
  )
  const dedupId = String(request.headers['idempotency-key'] ?? '')
  history.write({ type: 'receipt', dedupId, account, seq, key, answered })
  return answered
}

function answer(response: ServerResponse, answered: ReceiptEvent['answered']): void {
  if (answered === 'lost') response.destroy()
  else response.writeHead(answered === 'failed' ? 500 : 200).end()
}
