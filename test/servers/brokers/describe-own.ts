import { afterAll, beforeAll } from 'vitest'
import { describeWith } from '../describe-postgres.ts'

type Own<Server> = { readonly server: Server }

/** A suite with a server of its own. `server` is there inside hooks and tests only. */
export function describeOwn<Server extends { stop(): Promise<void> }>(
  name: string,
  { whyMissing, start }: { whyMissing: string | undefined; start: () => Promise<Server> },
  define: (own: Own<Server>) => void,
): void {
  describeWith(name, whyMissing, () => {
    let server: Server | undefined
    beforeAll(async () => {
      server = await start()
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

export function whyMissing(found: { kind: 'found' } | { kind: 'missing'; why: string }): string | undefined {
  return found.kind === 'missing' ? found.why : undefined
}
