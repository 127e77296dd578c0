import { Hono } from 'hono'
import pg from 'pg'
import { createLatchkey, notExecuted, outcomeUnknown, classifyNetworkFailure } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { postgresStore } from 'latchkey/stores/postgres'

type Env = { Variables: { account: string } }
declare const provider: {
  charge(amount: number, options: { idempotencyKey: string; signal: AbortSignal }): Promise<{ id: string }>
}
declare const mailer: { send(to: string): Promise<void> }
const pool = new pg.Pool()
const store = postgresStore({ pool })
const latchkey = createLatchkey({ store, scope: (c: import('hono').Context<Env>) => [c.get('account')] })
const app = new Hono<Env>()
