// express-idempotency with the store it comes with. It publishes one other, for MongoDB.
import express from 'express'
import expressIdempotency from 'express-idempotency'

export async function open() {
  const { getSharedIdempotencyService, idempotency } = expressIdempotency
  return {
    kind: 'hosted',
    listen(handle) {
      const app = express()
      app.use(express.json())
      app.use(idempotency())
      app.post('/orders', async (request, response) => {
        if (getSharedIdempotencyService().isHit(request)) return
        response.status(201).json(await handle(request.body))
      })
      // It sets the status and hands an error on; Express would log each with its stack.
      app.use((_error, _request, response, _next) => response.json({ error: 'refused' }))
      return new Promise(resolve => {
        const server = app.listen(0, '127.0.0.1', () => resolve(server.address().port))
      })
    },
  }
}
