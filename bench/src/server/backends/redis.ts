/** Redis, in a logical database of its own, through ioredis as the guide sets it up. */
import { Redis } from 'ioredis'
import { redisStore } from 'latchkey/stores/redis'
import { scanRows } from '../../../../test/servers/redis/scan-rows.ts'
import { redisSettings } from '../../machine/redis.ts'
import type { Backend } from './backend.ts'

const completed = '2'

export async function redisBackend(url: string): Promise<Backend> {
  const client = new Redis(url, { maxRetriesPerRequest: 1 })
  const own = new Redis(url)
  const none = () => {
    throw new Error('the redis store has no transactions')
  }
  return {
    store: redisStore({ client }),
    transaction: none,
    insertIn: none,
    async stored() {
      const rows = await scanRows(own, ['s'])
      return {
        rows: rows.length,
        completed: rows.filter(({ values: [state] }) => state === completed).length,
        businessRows: 0,
      }
    },
    settings: async () => `Redis: ${redisSettings}`,
  }
}
