/** Bodies of which only what a parser made of them is left. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { expect, it } from 'vitest'
import { deep, lookalikes } from '../../../test/http/parsed-bodies.ts'
import { createLatchkey } from '../../engine/latchkey.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { idempotent } from './index.ts'

it('tells each body from its look-alike, and refuses one that is nested too deep', async () => {
  const latchkey = createLatchkey<unknown, express.Request>({ store: memoryStore(), scope: () => 'acme' })
  const made = idempotent(latchkey.guarded('orders.create', { onFailure: 'rerun' }), (_req, res: express.Response) =>
    res.send('made'),
  )
  const app = express()
    .use(express.json({ strict: false }))
    .post('/orders', made)
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on TCP
  const post = (key: string, body: string) =>
    fetch(`http://127.0.0.1:${port}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body,
    })
  try {
    for (const [number, [one, other]] of lookalikes.entries()) {
      expect((await post(`k${number}`, one)).status, one).toBe(200)
      expect((await post(`k${number}`, other)).status, other).toBe(422)
    }
    const refused = await post('deep', deep)
    expect([refused.status, await refused.json()]).toEqual([413, expect.objectContaining({ levels_max: 256 })])
  } finally {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
    await latchkey.close()
  }
})
