import { until } from '../waiting.ts'
import type { Scene } from '../scene.ts'

export const lostResponse: Scene = {
  title: 'Lost response',
  premise: 'The client loses its connection after the charge and before the answer, and retries.',
  async play({ wish, send, sendUntilDone, charged, provider, tell }) {
    await provider.setFault({ kind: 'hold', ms: 1_000, requests: 1 })
    const payment = wish('/payments')
    const connection = new AbortController()
    const sent = send(payment, connection.signal)
    tell('waiting for the charge')
    await until('the charge is in the ledger', () => charged(payment))
    connection.abort()
    await sent
    await sendUntilDone(payment)
  },
}
