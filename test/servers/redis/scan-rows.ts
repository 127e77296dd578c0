/** Every row that Latchkey has in a Redis server, read key by key: for checkers, which have the server for themselves. */
import type { Redis } from 'ioredis'

export interface ScannedRow {
  /** 32 hex digits. */
  readonly id: string
  /** As they were asked for. */
  readonly values: readonly (string | null)[]
}

export async function scanRows(client: Redis, fields: readonly string[]): Promise<readonly ScannedRow[]> {
  const rows = new Map<string, ScannedRow>()
  for (let cursor = '0'; ;) {
    const [next, keys] = await client.scan(cursor, 'MATCH', 'lk:{*}:k:*', 'COUNT', 1_000)
    const found = await Promise.all(keys.map(key => client.hmget(key, ...fields)))
    for (const [at, key] of keys.entries()) {
      const values = found[at] ?? []
      // It may have expired since it was found.
      if (values.some(value => value !== null)) rows.set(key, { id: key.slice(key.lastIndexOf(':') + 1), values })
    }
    if (next === '0') return [...rows.values()]
    cursor = next
  }
}
