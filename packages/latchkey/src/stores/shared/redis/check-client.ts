/** What a store was given to reach Redis with. A wrong object is named, with the line to write instead. */
import { shown } from '../../../ports/check-options.ts'
import { misconfigured } from '../../../ports/errors.ts'
import type { RedisClient } from './driver.ts'

const cure = 'new Redis(url) of ioredis, or createClient({ url }) of node-redis'

/** `option`: of whom, and its name. */
export function checkClient(option: string, client: unknown): RedisClient {
  if (client === undefined) throw misconfigured(`${option} is missing: ${cure}`)
  if (isRedisClient(client)) return client
  const hint = typeof client === 'string' ? 'it takes a client, and no address: ' : ''
  throw misconfigured(`${option} must be ${cure} (got ${hint}${shown(client)})`)
}

function isRedisClient(value: unknown): value is RedisClient {
  if (typeof value !== 'object' || value === null || !has(value, 'on')) return false
  return has(value, 'callBuffer') || has(value, 'withTypeMapping')
}

function has(value: object, method: string): boolean {
  return typeof Reflect.get(value, method) === 'function'
}
