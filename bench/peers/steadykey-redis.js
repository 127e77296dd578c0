import { createClient } from 'redis'
import { RedisIdempotencyStore } from 'steadykey'
import { steadykeyPeer } from './steadykey.js'

export async function open(place) {
  const client = await createClient({ url: place }).connect()
  return steadykeyPeer(new RedisIdempotencyStore(client), () => client.dbSize())
}
