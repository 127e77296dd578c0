/** The morning after: a provider was away, and 400 outcomes are unknown. Everything is done from the command line, by two people. */
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AdminKey, AdminRow, Proposal } from 'latchkey/admin'
import { postgresStore } from 'latchkey/stores/postgres'
import { createWorkers } from 'latchkey/workers'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import { type AdminServer, startAdmin } from './admin-server.ts'
import { useProgram } from './program.ts'
import { openShop, type Shop } from './shop.ts'

const rows = 400
/** What the provider does not find when it is asked, and lists in its export. */
const late = 20
const neverHappened = 2

describePostgres('400 unknown outcomes after an outage', database => {
  const program = useProgram()
  /** Keys that the provider knows, by what it calls them. */
  const charges = new Map<string, string>()
  let pool: pg.Pool
  let shop: Shop
  let server: AdminServer

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 8 })
    pool.on('error', () => {})
    const store = postgresStore({ pool })
    await store.migrate()
    shop = openShop(store, key => {
      const id = charges.get(key)
      return id === undefined ? { kind: 'still-unknown' } : { kind: 'happened', value: { id } }
    })
    server = await startAdmin(shop, { alice: 'approver', bob: 'approver', vera: 'viewer' }, { actsPerMinute: 10_000 })
  })
  afterAll(async () => {
    await server.close()
    await pool.end()
  })

  const as = (name: string, ...args: string[]) => program.run(args, { env: server.env(name), msMax: 300_000 })
  const jsonAs = <T>(name: string, ...args: string[]) => program.json<T>(args, { env: server.env(name) })
  const unknownIds = async () =>
    (await jsonAs<AdminRow[]>('alice', 'unknown', 'list', '--limit', '1000')).map(({ id }) => id)
  const resultsOf = (stdout: string) => {
    const results = stdout
      .trim()
      .split('\n')
      .map(line => (JSON.parse(line) as { result: string }).result)
    return Object.fromEntries(
      [...new Set(results)].map(result => [result, results.filter(each => each === result).length]),
    )
  }

  /** Until the provider has told what it knows. */
  const reconciled = async () => {
    const workers = createWorkers(shop.latchkey, { only: ['reconciler'], reconciler: { use: shop.reconciler } })
    workers.start()
    const untilMs = performance.now() + 120_000
    let left = rows
    while (left > late && performance.now() < untilMs) {
      workers.wake()
      await new Promise(resolve => setTimeout(resolve, 250))
      left = (await shop.latchkey.list({ state: 'unknown', limit: 1_000 })).records.length
    }
    await workers.drain()
  }

  it('end with evidence for each, and two of them by a second person', { timeout: 600_000 }, async () => {
    const ids: string[] = []
    for (let n = 0; n < rows; n += 1) ids.push(await shop.unknownPayment(`payment ${n}`, { scope: `acct ${n % 40}` }))
    const keys = new Map<string, string>()
    for (const id of ids) keys.set(id, (await shop.latchkey.inspect({ id })).openEffect?.downstreamKey ?? '')
    for (const [n, id] of ids.slice(0, rows - late).entries()) charges.set(keys.get(id) ?? '', `ch_${n}`)

    // A viewer may look, and no more.
    expect((await as('vera', 'unknown', 'look-up', ids[0] ?? '', '--reason', 'curious')).code).toBe(4)

    const asked = await as(
      'alice',
      'unknown',
      'look-up',
      '--all-matching',
      '--yes',
      '--jsonl',
      '--reason',
      'the provider is back',
    )
    expect(asked.code, asked.stderr).toBe(0)
    expect(resultsOf(asked.stdout)).toEqual({ done: rows })
    await reconciled()
    expect(await unknownIds()).toHaveLength(late)

    await pool.query(`update latchkey.due set since = since - interval '1 hour'`)
    const lines = (await unknownIds()).map(
      (id, n) => `${keys.get(id)},${n < neverHappened ? 'failed' : 'paid'},ch_late_${n}`,
    )
    program.write('export.csv', ['client_ref,state,charge_id', ...lines].join('\n'))
    const map = 'match=downstream_key:client_ref,status=state,happened=paid,did-not-happen=failed,reference=charge_id'
    const imported = await as(
      'alice',
      'settle',
      '--import',
      'export.csv',
      '--map',
      map,
      '--yes',
      '--jsonl',
      '--reason',
      'export of noon',
    )
    expect(imported.code, imported.stderr).toBe(0)
    expect(resultsOf(imported.stdout)).toEqual({ done: late - neverHappened, 'second-person-needed': neverHappened })

    const open = await jsonAs<Proposal[]>('bob', 'proposals', 'list')
    expect(open).toHaveLength(neverHappened)
    for (const { proposalId } of open) {
      expect((await as('alice', 'proposals', 'approve', proposalId, '--reason', 'I am sure')).code).toBe(4)
      expect((await as('bob', 'proposals', 'approve', proposalId, '--reason', 'checked with their support')).code).toBe(
        0,
      )
    }
    expect(await unknownIds()).toEqual([])

    for (const id of ids) expect((await shop.latchkey.inspect({ id })).evidence, id).not.toEqual([])
    const refused = await jsonAs<AdminKey>('bob', 'key', 'show', open[0]?.id ?? '')
    expect(refused.state).toBe('pending')
    const audit = await jsonAs<{ by: string; refused?: string }[]>('bob', 'audit', '--id', open[0]?.id ?? '')
    expect(new Set(audit.map(({ by }) => by))).toEqual(new Set(['alice', 'bob']))
  })
})
