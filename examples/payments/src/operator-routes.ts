/** Routes for operators: list, inspect and settle unknown outcomes. */
import type { Context, Hono } from 'hono'
import type { Inspection, KeyRecord, LatchkeyWithoutTransactions, OperatorVerdict } from 'latchkey'
import type { Env } from './api.ts'

interface Settling {
  readonly verdict: OperatorVerdict
  readonly by: string
  readonly reason: string
}

export function operatorRoutes(app: Hono<Env>, latchkey: LatchkeyWithoutTransactions<Context<Env>>): void {
  app.get('/operator/unknown', async c => {
    const { records } = await latchkey.list({ state: 'unknown' })
    return c.json(records.map(({ fingerprint: _, claimId: __, outcome: ___, ...shown }) => shown))
  })
  app.get('/operator/rows/:operation/:key', async c => {
    const { operation, key } = c.req.param()
    return c.json(shownRow(await latchkey.inspect({ scope: [c.get('account')], operation, key })))
  })
  app.get('/operator/rows/:id', async c => c.json(shownRow(await latchkey.inspect({ id: c.req.param('id') }))))
  app.post('/operator/unknown/:id/settle', async c => {
    const { verdict, by, reason } = await c.req.json<Settling>()
    return c.json(await latchkey.settle({ id: c.req.param('id') }, verdict, { by, reason }))
  })
}

/** What an operator sees of a row: nothing that a client sent. */
export interface ShownRow extends Pick<Inspection, 'evidence' | 'audit'> {
  /** Absent: there is no such row. */
  readonly row?: Pick<KeyRecord, 'id' | 'operation' | 'state' | 'attempts' | 'fence' | 'parked'>
}

function shownRow({ record, evidence, audit }: Inspection): ShownRow {
  if (record === undefined) return { evidence, audit }
  const { id, operation, state, attempts, fence, parked } = record
  return { row: { id, operation, state, attempts, fence, parked }, evidence, audit }
}
