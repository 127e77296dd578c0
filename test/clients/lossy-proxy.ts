/** An HTTP proxy that loses what it is told to lose, as networks and load balancers do. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What happens to one request. */
export type Loss =
  | 'nothing'
  /** The connection ends before the request has reached the server. */
  | 'connection'
  /** The connection ends when the server has answered, and the client gets nothing of the answer. */
  | 'answer'
  /** The connection ends at this moment, while the server still works. */
  | { readonly at: Promise<void> }

export interface LossyProxy {
  readonly url: string
  /** Requests that came from the client. */
  readonly requests: number
  /** Resolves with the first status that the client was sent. */
  readonly firstStatus: Promise<number>
  close(): Promise<void>
}

/** The losses of the first requests, in order. All later ones pass. */
export async function startLossyProxy(target: string, losses: readonly Loss[]): Promise<LossyProxy> {
  let requests = 0
  let sent: (status: number) => void = () => {}
  const firstStatus = new Promise<number>(resolve => (sent = resolve))
  const server = createServer((req, res) => {
    const loss = losses[requests] ?? 'nothing'
    requests += 1
    if (loss === 'connection') return void req.socket.destroy()
    if (typeof loss === 'object') void loss.at.then(() => req.socket.destroy())
    forward(target, { req, res, sent: loss === 'nothing' ? sent : undefined })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // it listens on TCP
    get requests() {
      return requests
    },
    firstStatus,
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

interface Exchanged {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Absent: the answer is lost. */
  readonly sent: ((status: number) => void) | undefined
}

function forward(target: string, { req, res, sent }: Exchanged): void {
  const { method = 'GET', url = '/', rawHeaders } = req
  const upstream = request(target + url, { method, headers: rawHeaders, agent: false }, answer => {
    if (sent === undefined) {
      answer.resume()
      return void req.socket.destroy()
    }
    const status = answer.statusCode ?? 502
    res.writeHead(status, answer.rawHeaders)
    answer.pipe(res)
    res.on('finish', () => sent(status))
  })
  // The client has left: nobody is there to be told.
  upstream.on('error', () => req.socket.destroy())
  req.pipe(upstream)
}
