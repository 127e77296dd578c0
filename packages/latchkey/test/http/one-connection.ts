/** The same request again and again on one connection, which an answer of another request must not spoil. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'

export interface OneConnection {
  /** The status, the body, and whether the connection was used before. */
  ask(): Promise<[status: number | undefined, body: string, reused: boolean]>
  destroy(): void
}

export function oneConnection(url: string): OneConnection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    async ask() {
      const outgoing = request(url, { method: 'POST', agent, headers: { 'idempotency-key': 'k' } })
      const [incoming] = (await once(outgoing.end(), 'response')) as [IncomingMessage] // the event's own signature
      return [incoming.statusCode, (await buffer(incoming)).toString(), outgoing.reusedSocket]
    },
    destroy: () => agent.destroy(),
  }
}
