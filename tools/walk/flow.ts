/** What every flow stands on: a PostgreSQL database, and a pool that reports each statement to the trace. */
import pg from 'pg'
import { createLatchkey, type Latchkey } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import { statementSent, traceOf } from './trace.ts'

export interface Flow {
  /** What has to be there before the request, and is not traced. */
  prepare?(key: string): Promise<void>
  /** Sent with a key that was not used before. Resolves when it was answered as it should be. */
  request(key: string): Promise<void>
  close(): Promise<void>
}

export interface Opened<Context> {
  readonly pool: pg.Pool
  readonly latchkey: Latchkey<pg.PoolClient, Context>
  close(): Promise<void>
}

export async function openLatchkey<Context>(databaseUrl: string): Promise<Opened<Context>> {
  const pool = new pg.Pool({ connectionString: databaseUrl })
  pool.on('connect', client => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown
    Reflect.set(client, 'query', (...args: unknown[]) => {
      statementSent()
      return query(...args)
    })
  })
  const store = postgresStore({ pool })
  await store.migrate()
  const latchkey = createLatchkey<pg.PoolClient, Context>({ store, scope: () => 'acme', maintenance: false })
  return {
    pool,
    latchkey,
    async close() {
      await latchkey.close()
      await pool.end()
    },
  }
}

export function expectStatus(response: { readonly status: number }, status: number): void {
  if (response.status !== status) throw new Error(`the flow was answered ${response.status}, and not ${status}`)
}

/** From the traced process to the one that prints: the numbers of functions, by call and from the request's first to its first statement. */
export interface Report {
  readonly calls: readonly number[]
  readonly path: readonly number[]
}

/** Enough that what happens once per process, or once per connection, has happened. */
const warmUps = 20
/** The shortest counts. One that comes later than 10 ms after the one before checks its connection out anew, and on a busy machine most do. */
const traced = 40

export async function report(open: (databaseUrl: string) => Promise<Flow>): Promise<void> {
  const flow = await open(process.argv[2] ?? '')
  for (let n = 0; n < warmUps; n += 1) {
    await flow.prepare?.(`warm-up-${n}`)
    await flow.request(`warm-up-${n}`)
  }
  const reports: Report[] = []
  for (let n = 0; n < traced; n += 1) {
    await flow.prepare?.(`traced-${n}`)
    const { frames, path } = await traceOf(() => flow.request(`traced-${n}`))
    reports.push({ calls: frames.map(({ number }) => number), path: path.map(({ number }) => number) })
  }
  const functionsOf = ({ calls }: Report) => new Set(calls).size
  const [shortest] = reports.toSorted((left, right) => functionsOf(left) - functionsOf(right))
  process.send?.(shortest)
  await flow.close()
}
