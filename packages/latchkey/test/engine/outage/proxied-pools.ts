/** Two pools on one database: one over a wire that a test can cut, and one beside it. */
import pg from 'pg'
import { startTcpProxy, type TcpProxy } from '../../../../../test/servers/tcp-proxy.ts'

export interface ProxiedPools {
  readonly proxy: TcpProxy
  readonly wired: pg.Pool
  /** Looks at the same database over a whole wire. */
  readonly outside: pg.Pool
  close(): Promise<void>
}

export async function openProxiedPools(url: string): Promise<ProxiedPools> {
  const proxy = await startTcpProxy(url)
  const outside = new pg.Pool({ connectionString: url, max: 2 })
  const wired = new pg.Pool({ connectionString: proxy.through(url), max: 8 })
  for (const pool of [outside, wired]) pool.on('error', () => {})
  return {
    proxy,
    wired,
    outside,
    async close() {
      await Promise.all([outside.end(), wired.end()])
      await proxy.close()
    },
  }
}
