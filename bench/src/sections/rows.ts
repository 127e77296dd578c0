/** What a completed key leaves on disk, and what it costs to write. */
import pg from 'pg'
import type { Context } from '../context.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import type { Section, SectionResult } from '../section.ts'
import { openStage, type Player } from '../stage.ts'
import { figure, median } from '../statistics.ts'

interface RowCost {
  readonly rows: number
  /** All of Latchkey's tables and indexes, vacuumed between slices of the load as autovacuum would, over the rows. */
  readonly bytesPerRow: number
  readonly indexBytesPerRow: number
  readonly walBytesPerRequest: number
  /** Share of the updates that touched no index. */
  readonly hotShare: number
  /** Row versions written by updates, per request. */
  readonly updatesPerRequest: number
}

/** The load comes in slices with a vacuum after each: a table in use lives on the space that its dead versions leave. */
const slices = 5

export const rows: Section = {
  name: 'rows',
  what: 'bytes of a small completed row with its indexes, WAL per request, and the share of heap-only updates',
  async run(context) {
    const costs: RowCost[] = []
    for (let repetition = 0; repetition < context.repetitions; repetition++) costs.push(await measureNew(context))
    return resultOf(costs)
  },
}

async function measureNew(context: Context): Promise<RowCost> {
  const stage = await openStage({ subjects: ['postgres'] }, context)
  try {
    const [player] = stage.players
    if (player === undefined) throw new Error('PostgreSQL is missing')
    return await measure(player, context)
  } finally {
    await stage.close()
  }
}

async function measure({ server, place }: Player, { load, quick }: Context): Promise<RowCost> {
  const pool = new pg.Pool({ connectionString: place, max: 2 })
  pool.on('error', () => {})
  const requestsMax = quick ? 400 : 4_000
  const walBefore = await walBytes(pool)
  const empty = await sizes(pool)
  let rows = 0
  for (let slice = 0; slice < slices; slice++) {
    const keys = { kind: 'new', prefix: `slice${slice}-` } as const
    rows += (await load.run({ port: server.port, connections: 64, seconds: 60, keys, requestsMax })).acknowledged
    await pool.query('vacuum')
  }
  const [full, written, updates] = [await sizes(pool), (await walBytes(pool)) - walBefore, await updatesOf(pool)]
  await pool.end()
  return {
    rows,
    bytesPerRow: (full.all - empty.all) / rows,
    indexBytesPerRow: (full.indexes - empty.indexes) / rows,
    walBytesPerRequest: written / rows,
    hotShare: updates.all === 0 ? 1 : updates.hot / updates.all,
    updatesPerRequest: updates.all / rows,
  }
}

async function walBytes(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ bytes: string }>(`select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes`)
  return Number(rows[0]?.bytes)
}

async function sizes(pool: pg.Pool): Promise<{ all: number; indexes: number }> {
  const { rows } = await pool.query<{ all: string; indexes: string }>(
    `select sum(pg_total_relation_size(c.oid)) as all, sum(pg_indexes_size(c.oid)) as indexes
     from pg_class c where c.relnamespace = 'latchkey'::regnamespace and c.relkind = 'r'`,
  )
  return { all: Number(rows[0]?.all), indexes: Number(rows[0]?.indexes) }
}

async function updatesOf(pool: pg.Pool): Promise<{ all: number; hot: number }> {
  // What a backend did is counted a second after it did it.
  await new Promise(resolve => setTimeout(resolve, 1_500))
  const { rows } = await pool.query<{ all: string; hot: string }>(
    `select sum(n_tup_upd) as all, sum(n_tup_hot_upd) as hot from pg_stat_user_tables where schemaname = 'latchkey'`,
  )
  return { all: Number(rows[0]?.all), hot: Number(rows[0]?.hot) }
}

function resultOf(costs: readonly RowCost[]): SectionResult {
  const each = (member: keyof RowCost) => costs.map(cost => cost[member])
  const percent = each('hotShare').map(share => share * 100)
  const table = markdownTable(
    [
      'rows',
      'bytes per row, indexes included',
      'of these indexes',
      'WAL bytes per request',
      'updates per request',
      'heap-only',
    ],
    [
      [
        median(each('rows')).toFixed(0),
        withSpread(each('bytesPerRow'), 0),
        withSpread(each('indexBytesPerRow'), 0),
        withSpread(each('walBytesPerRequest'), 0),
        withSpread(each('updatesPerRequest'), 2),
        `${withSpread(percent, 0)} %`,
      ],
    ],
  )
  return {
    markdown: ['### Rows: what a small completed key leaves on disk', table].join('\n\n'),
    figures: {
      'bytes per row': figure(each('bytesPerRow'), 'B', 'bytes per small completed row, with indexes'),
      'WAL per request': figure(each('walBytesPerRequest'), 'B', 'WAL bytes per request'),
      'heap-only updates': figure(percent, '%', 'share of heap-only updates'),
    },
    faults: [],
    data: costs,
  }
}
