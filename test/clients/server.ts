/** A Latchkey server, one for each thing that is measured. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { createLatchkey, type GuardedOptions, type HttpOptions, type Store } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'

export interface AppOptions {
  readonly store: Store
  readonly operation: string
  readonly options: GuardedOptions<Context>
  readonly http: HttpOptions<Context>
  handle(c: Context, run: number): Response | Promise<Response>
}

export interface RunningApp {
  readonly url: string
  /** Waits for what is under way, and returns how often the handler ran. */
  close(): Promise<number>
}

export async function startApp({ store, operation, options, http, handle }: AppOptions): Promise<RunningApp> {
  let runs = 0
  const latchkey = createLatchkey({ store, scope: (_: Context) => 'acme', http })
  const app = new Hono()
  const onError = (error: Error, c: Context) => c.json({ error: { message: error.message } }, 500)
  const run = async (c: Context) => handle(c, (runs += 1))
  app.post('*', idempotent(latchkey.guarded(operation, options), run, { onError }))
  // The clients in this process use the global objects.
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // it listens on TCP
    async close() {
      await latchkey.close()
      await new Promise(resolve => server.close(resolve))
      return runs
    },
  }
}
