/** What people write first: a pool, an INSERT before the work, an UPDATE after it. */
import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type pg from 'pg'
import type { Stored } from './backends/backend.ts'
import type { Work } from './order.ts'
import { type PlainRoute, sendJson } from './plain.ts'

const create = `create table if not exists naive_keys (
  scope text not null, key text not null, fingerprint text not null, state text not null,
  status integer, headers jsonb, body text, created_at timestamptz not null default now(), primary key (scope, key))`
const claim = `insert into naive_keys (scope, key, fingerprint, state) values ($1, $2, $3, 'in_progress') on conflict do nothing`
const complete = `update naive_keys set state = 'completed', status = $3, headers = $4, body = $5 where scope = $1 and key = $2`
const read = 'select fingerprint, state, status, body from naive_keys where scope = $1 and key = $2'

interface NaiveRow {
  readonly fingerprint: string
  readonly state: string
  readonly status: number
  readonly body: string
}

export async function naiveRoute(pool: pg.Pool, { handle }: Work): Promise<PlainRoute> {
  await pool.query(create)
  return async (request, response) => {
    const key = String(request.headers['idempotency-key'])
    const fingerprint = createHash('sha256').update(request.raw).digest('hex')
    const { rowCount } = await pool.query(claim, ['bench', key, fingerprint])
    if (rowCount === 0) return replay(pool, { key, fingerprint }, response)
    const text = JSON.stringify(await handle(request.body))
    await pool.query(complete, ['bench', key, 201, '{"content-type":"application/json"}', text])
    sendJson(response, 201, text)
  }
}

async function replay(
  pool: pg.Pool,
  { key, fingerprint }: { key: string; fingerprint: string },
  response: ServerResponse,
): Promise<void> {
  const { rows } = await pool.query<NaiveRow>(read, ['bench', key])
  const [row] = rows
  if (row?.fingerprint !== fingerprint) return sendJson(response, 422, '{"error":"key reused"}')
  if (row.state !== 'completed') return sendJson(response, 409, '{"error":"in progress"}')
  sendJson(response, row.status, row.body)
}

export async function naiveStored(pool: pg.Pool): Promise<Stored> {
  const { rows } = await pool.query<{ rows: string; completed: string }>(
    `select count(*) as rows, count(*) filter (where state = 'completed') as completed from naive_keys`,
  )
  return { rows: Number(rows[0]?.rows), completed: Number(rows[0]?.completed), businessRows: 0 }
}
