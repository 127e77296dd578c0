/** A guarded POST on Express. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express, { type Request, type Response } from 'express'
import { captureVerify, idempotent } from 'latchkey/http/express'
import { expectStatus, openLatchkey, report } from '../flow.ts'

await report(async databaseUrl => {
  const { latchkey, close } = await openLatchkey(databaseUrl)
  const payments = latchkey.guarded('payments.create', { onFailure: 'hold' })
  const app = express().use(express.json({ verify: captureVerify }))
  app.post(
    '/payments',
    idempotent(payments, (_req: Request, res: Response) => void res.status(201).json({ id: 'pay_1' })),
  )
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    async request(key) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': `"${key}"` }
      const response = await fetch(`http://127.0.0.1:${port}/payments`, {
        method: 'POST',
        headers,
        body: '{"amount":100}',
      })
      await response.arrayBuffer()
      expectStatus(response, 201)
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await close()
    },
  }
})
