import { type Context, Hono } from 'hono'
import pg from 'pg'
import { createLatchkey, notExecuted, outcomeUnknown, classifyNetworkFailure } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { postgresStore } from 'latchkey/stores/postgres'

type Env = { Variables: { account: string } }
declare const provider: {
  charge(amount: number, options: { idempotencyKey: string; signal: AbortSignal }): Promise<{ id: string }>
}
declare const mailer: { send(to: string): Promise<void> }
declare const limiter: { admits(account: string): Promise<boolean> }
const pool = new pg.Pool()
const store = postgresStore({ pool })
const latchkey = createLatchkey({ store, scope: (c: Context<Env>) => [c.get('account')] })
const app = new Hono<Env>()
const renderError = (error: Error, c: Context<Env>): Response => c.json({ error: error.name }, 500)
app.onError(renderError)

// Blocks use what they need of this.
export { app, classifyNetworkFailure, idempotent, latchkey, limiter, mailer, notExecuted, outcomeUnknown, pool }
export { provider, renderError }
