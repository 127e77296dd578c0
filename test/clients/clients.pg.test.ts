import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Store } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import { describePostgres } from '../servers/describe-postgres.ts'
import { type Client, clients } from './clients.ts'
import { created, type Measured, measure, type Trial } from './measure.ts'

/** What a client did in all trials. */
interface Trials {
  readonly installed: Measured
  readonly refused: Measured
  readonly waited: Measured
  readonly unknown: Measured
  readonly limited: Measured
}

const guide = new URL('../../docs/guides/tell-your-clients.md', import.meta.url)

describePostgres('clients as they are', database => {
  const records = new Map<Client, Trials>()
  let pool: pg.Pool
  let store: Store

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url })
    const migrated = postgresStore({ pool })
    await migrated.migrate()
    store = migrated
  })
  afterAll(() => pool.end())

  it.concurrent.each(clients.map(client => [client.name, client] as const))(
    '%s: one execution, whatever is lost',
    async (_, client) => {
      const run = (trial: Trial) => measure(client, store, trial)
      const installed = await run({ setUp: false, losses: ['answer'] })
      const lostBoth = await run({ setUp: true, losses: ['connection', 'answer'] })
      const refused = await run(stillRunning('refuse'))
      const waited = await run(stillRunning('wait'))
      const unknown = await run({ setUp: true, options: { onFailure: 'hold' }, handle: fail })
      const limited = await run({ setUp: true, handle: (c, times) => (times === 1 ? tooMany() : created(c)) })
      for (const { runs } of [installed, lostBoth, refused, waited, unknown]) expect(runs).toBe(1)
      expect([lostBoth.end, lostBoth.requests]).toEqual(['ok', 3])
      expect(waited.end).toBe('ok')
      // A 429 is not stored under `rerun`: each request that comes back runs.
      expect(limited.runs).toBe(limited.requests)
      // Not for a minute.
      expect(unknown.ms).toBeLessThan(25_000)
      expect(unknown.end).toBe(409)
      records.set(client, { installed, refused, waited, unknown, limited })
    },
    60_000,
  )

  it('reads the code of a problem in the shape of its library', () => {
    const errorOf = (name: string) => records.get(named(name))?.unknown.error
    expect(errorOf('openai')).toMatchObject({ code: 'outcome-unknown', message: expect.stringContaining('same key') })
    expect(errorOf('stripe-node')).toMatchObject({ code: 'outcome_unknown', type: 'StripeAPIError' })
  })

  it('is the table of the guide', () => {
    const table = tableOf(clients.map(client => [client, records.get(client)]))
    const shown = /<!-- clients[^\n]*-->\n([^]*?)\n<!-- clients: end -->/.exec(readFileSync(guide, 'utf8'))?.[1]
    expect(shown?.trim()).toBe(table)
  })
})

/** The connection is lost while the handler runs, which ends when the retry has been refused, or waits, or does not come. */
function stillRunning(onInProgress: 'refuse' | 'wait'): Trial {
  let begin = () => {}
  let end = () => {}
  const begun = new Promise<void>(resolve => (begin = resolve))
  const mayEnd = new Promise<void>(resolve => (end = resolve))
  return {
    setUp: true,
    losses: [{ at: begun }],
    options: { onInProgress },
    async handle(c) {
      begin()
      await mayEnd
      return created(c)
    },
    async during(proxy, settled) {
      const retried = onInProgress === 'refuse' ? proxy.firstStatus : untilRetried(() => proxy.requests)
      await Promise.race([retried, settled])
      end()
    },
  }
}

async function untilRetried(requests: () => number): Promise<void> {
  while (requests() < 2) await new Promise(resolve => setTimeout(resolve, 20))
}

function fail(): never {
  throw new Error('the provider did not answer')
}

function tooMany(): Response {
  return Response.json({ error: { message: 'slow down' } }, { status: 429, headers: { 'Retry-After': '1' } })
}

function named(name: string): Client {
  const client = clients.find(one => one.name === name)
  if (client === undefined) throw new Error(`no client ${name}`)
  return client
}

function tableOf(rows: readonly (readonly [Client, Trials | undefined])[]): string {
  const head = [
    '| client | makes the key | a lost answer, as installed | option that retries a `POST` | 409 `in-progress` | with `wait` | unknown outcome | 429 of the handler |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
  ]
  return [...head, ...rows.map(([client, record]) => rowOf(client, record))].join('\n')
}

function rowOf({ name, keyFrom, setUp = '–' }: Client, record: Trials | undefined): string {
  if (record === undefined) return `| ${name} | not measured |`
  const { installed, refused, waited, unknown, limited } = record
  const cells = [
    name,
    keyFrom,
    installed.end === 'ok' ? 'retries' : 'gives up',
    setUp,
    refused.end === 'ok' ? 'retries' : `gives up with ${refused.end}`,
    waited.end,
    `${unknown.requests} requests`,
    limited.end === 'ok' ? 'retries' : 'gives up',
  ]
  return `| ${cells.join(' | ')} |`
}
