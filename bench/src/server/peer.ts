/** Another library behind the same endpoint. Its file in bench/peers uses it as its own documentation says. */
import type { ServerResponse } from 'node:http'
import type { Order, Receipt, Work } from './order.ts'
import { listenPlain, type PlainRequest, sendJson, sendReceipt } from './plain.ts'

/** What a peer makes of one request: the receipt of the first run, or why there is none. */
export type PeerAnswer = { readonly receipt: Receipt } | { readonly status: number }

export interface PlainPeer {
  readonly kind: 'plain'
  run(request: { key: string; body: Order; path: string }, handle: () => Promise<Receipt>): Promise<PeerAnswer>
  /** Keys in its store. */
  stored(): Promise<number>
}

/** A peer that only its framework can host. */
export interface HostedPeer {
  readonly kind: 'hosted'
  listen(handle: (order: Order) => Promise<Receipt>): Promise<number>
}

interface PeerModule {
  open(place: string): Promise<PlainPeer | HostedPeer>
}

export interface OpenPeer {
  readonly port: number
  stored(): Promise<number | undefined>
}

export async function openPeer(file: string, place: string, { handle }: Work): Promise<OpenPeer> {
  // Plain JavaScript beside its own node_modules: the root's type check must not need what only the benchmark installs.
  const { open } = (await import(file)) as PeerModule
  const peer = await open(place)
  if (peer.kind === 'hosted') return { port: await peer.listen(order => handle(order)), stored: async () => undefined }
  const route = async (request: PlainRequest, response: ServerResponse) => {
    const key = String(request.headers['idempotency-key'])
    const answer = await peer.run({ key, body: request.body, path: '/orders' }, () => handle(request.body))
    if ('receipt' in answer) sendReceipt(response, answer.receipt)
    else sendJson(response, answer.status, '{"error":"refused"}')
  }
  return { port: await listenPlain(route), stored: () => peer.stored() }
}
