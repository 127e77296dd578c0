/** Redis through `ioredis`. */
import { redisStore } from 'latchkey/stores/redis'
import { masked } from '../config/secrets.ts'
import { fitCheck } from '../doctor/fit.ts'
import type { Context } from '../program/context.ts'
import { loadDriver, memberOf } from './driver.ts'
import type { OpenedStore } from './opened.ts'

interface Client {
  on(event: 'error', listener: (error: Error) => void): unknown
  quit(): Promise<unknown>
  disconnect(): void
}

export async function openRedis({ cwd, timeoutMs }: Context, url: string): Promise<OpenedStore> {
  const Opened = memberOf(await loadDriver(cwd, ['ioredis'], 'Redis'), 'Redis') as new (
    url: string,
    options: object,
  ) => Client
  const client = new Opened(url, {
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    maxRetriesPerRequest: 1,
    connectionName: 'latchkey-cli',
  })
  // The next command reports it.
  client.on('error', () => {})
  // A client of ioredis, whose types are not known here; the store checks it.
  const store = redisStore({ client: client as never })
  return {
    kind: 'redis',
    address: masked(url),
    store,
    checks: [fitCheck(() => store)],
    close: async () => client.disconnect(),
  }
}
