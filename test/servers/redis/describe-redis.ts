import { afterAll, beforeAll } from 'vitest'
import { describeWith } from '../describe-postgres.ts'
import { findRedis } from './redis-binary.ts'
import { type RedisServer, type RedisSettings, startRedis } from './redis-server.ts'

/** A suite with a Redis of its own: it starts in the blink of an eye. `server` is there inside hooks and tests only. */
export function describeRedis(
  name: string,
  define: (own: { readonly server: RedisServer }) => void,
  settings: RedisSettings = {},
): void {
  const found = findRedis()
  describeWith(name, found.kind === 'missing' ? found.why : undefined, () => {
    let server: RedisServer | undefined
    beforeAll(async () => {
      server = await startRedis(settings)
    })
    afterAll(() => server?.stop())
    define({
      get server() {
        if (server === undefined) throw new Error('the server exists inside hooks and tests only: read it there')
        return server
      },
    })
  })
}
