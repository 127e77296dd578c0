/** The keys in Redis. */
import { Redis } from 'ioredis'
import { startRedis } from '../../../test/servers/redis/redis-server.ts'
import { scanRows } from '../../../test/servers/redis/scan-rows.ts'
import { damagedScope, type KeyServer } from './key-server.ts'

const unknown = '4'
/** Waiting for a worker, and owned. */
const unfinished = ['0', '1']

export async function redisKeys(): Promise<KeyServer> {
  const server = await startRedis()
  const client = new Redis(server.url)
  return {
    url: server.url,
    async rows() {
      const found = await scanRows(client, ['s', 'sc'])
      const states = found
        .filter(({ values: [, scope] }) => scope?.includes(damagedScope) !== true)
        .map(({ values: [state] }) => state ?? '')
      return {
        unknown: states.filter(state => state === unknown).length,
        unfinished: states.filter(state => unfinished.includes(state)).length,
      }
    },
    committed: async () => [],
    async stop() {
      client.disconnect()
      await server.stop()
    },
  }
}
