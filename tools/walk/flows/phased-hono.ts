/** A phased POST on Hono: two phases and an effect, without a crash. */
import { type Context, Hono } from 'hono'
import { json } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { expectStatus, openLatchkey, report } from '../flow.ts'

await report(async databaseUrl => {
  const { latchkey, close } = await openLatchkey<Context>(databaseUrl)
  const payments = latchkey.phased<{ amount: number }>('payments.pay', { version: 1 }, async (x, { amount }) => {
    await x.phase('record', tx => tx.query('select 1'))
    const charge = await x.effect('charge', { timeoutMs: 1_000 }, async ({ key }) => ({ id: key, amount }))
    await x.phase('receipt', tx => tx.query('select 1'))
    return json(201, charge)
  })
  const app = new Hono()
  app.post('/payments', idempotent(payments, { input: c => c.req.json<{ amount: number }>() }))
  return {
    async request(key) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': `"${key}"` }
      const response = await app.request('/payments', { method: 'POST', headers, body: '{"amount":100}' })
      await response.arrayBuffer()
      expectStatus(response, 201)
    },
    close,
  }
})
