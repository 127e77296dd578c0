/** node:http and nothing else. The body is read and parsed before any guard sees it, as in every server here. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from './listen.ts'
import type { Order, Receipt, Work } from './order.ts'

export interface PlainRequest extends IncomingMessage {
  body: Order
  raw: Buffer
}

/** Answers a request whose body is parsed. */
export type PlainRoute = (request: PlainRequest, response: ServerResponse) => Promise<void> | void

export function bareRoute({ handle }: Work): PlainRoute {
  return async (request, response) => sendReceipt(response, await handle(request.body))
}

export function sendReceipt(response: ServerResponse, receipt: Receipt): void {
  sendJson(response, 201, JSON.stringify(receipt))
}

export function sendJson(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

export function listenPlain(route: PlainRoute): Promise<number> {
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const raw = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
      const body = JSON.parse(raw.toString()) as Order
      void answer(route, Object.assign(incoming, { body, raw }), response)
    })
  })
  return listen(server)
}

async function answer(route: PlainRoute, request: PlainRequest, response: ServerResponse): Promise<void> {
  try {
    await route(request, response)
  } catch (error) {
    reportOnce(error)
    if (!response.headersSent) sendJson(response, 500, '{"error":"failed"}')
  }
}

let reported = false

/** Thousands of requests may fail alike. */
export function reportOnce(error: unknown): void {
  if (!reported) console.error(error)
  reported = true
}
