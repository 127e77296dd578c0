/** Small HTTP servers of the playground's processes, on loopback. */
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

const listenAgainMs = 50
/** Whoever has the port for longer keeps it. */
const listenLimitMs = 20_000

/** On a port that was ours before, another process's connection may be in the way for a moment. 0: the kernel chooses. */
export async function listen(on: Server, wanted: number): Promise<number> {
  const untilMs = performance.now() + listenLimitMs
  for (;;) {
    on.listen(wanted, '127.0.0.1')
    const failure = await once(on, 'listening').catch((error: unknown) => error)
    const address = on.address()
    if (typeof address === 'object' && address !== null) return address.port
    if (wanted === 0 || performance.now() > untilMs) throw failure
    await delay(listenAgainMs)
  }
}

export function answeringErrors(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  }
}

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

export function answer(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
