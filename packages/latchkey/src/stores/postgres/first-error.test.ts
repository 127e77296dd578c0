import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, describe, expect, it } from 'vitest'
import pg from 'pg'
import { postgresStore } from './index.ts'

/** A server that goes down while it greets: its last words come in the same bytes as its first. */
const server = createServer(socket => {
  socket.on('error', () => {})
  socket.once('data', () => {
    const goodbye = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0'
    socket.end(
      Buffer.concat([
        message('R', Buffer.alloc(4)),
        message('Z', Buffer.from('I')),
        message('E', Buffer.from(goodbye)),
      ]),
    )
  })
})
afterAll(() => server.close())

describe('a connection that ends as it begins', () => {
  it('fails its transaction, and not the process', async () => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'nobody', database: 'none' })
    pool.on('error', () => {})
    // An 'error' that nobody listens to is an uncaught exception, which fails the whole run.
    await expect(postgresStore({ pool }).transactor?.transaction(async () => 'commit')).rejects.toMatchObject({
      code: 'store-unavailable',
    })
    await pool.end()
  })
})

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, 0)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
