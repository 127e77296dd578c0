/**
 * "A cache can never be the reason for a second execution or for an answer that the database would not give": several processes ask for the same keys
 * while an operator forgets them, and the cache is flushed, stopped, killed and filled with wrong bytes.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import pg from 'pg'
import { createLatchkey } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import { type CacheFigures, tieredStore } from 'latchkey/stores/tiered'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { describeRedis } from '../../../../test/servers/redis/describe-redis.ts'
import type { RedisServer } from '../../../../test/servers/redis/redis-server.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'
import { openIoredis } from '../redis/clients.ts'
import { act } from './fixture.ts'

const keys = 12
const seconds = 8

interface Ran {
  readonly kind: 'ran'
  readonly key: string
  readonly n: number
  readonly atMs: number
}
interface Answer {
  readonly kind: 'answer'
  readonly key: string
  readonly n: number
  readonly startMs: number
}
type Figures = CacheFigures & { readonly kind: 'figures' }
type Line = Ran | Answer | Figures

interface Forget {
  readonly key: string
  readonly startMs: number
  readonly endMs: number
  /** False: it was refused, and whether it happened is not known. */
  readonly isSure: boolean
}

const nowMs = () => Number(process.hrtime.bigint() / 1_000n) / 1_000
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

async function worker(databaseUrl: string, cacheUrl: string): Promise<readonly Line[]> {
  const program = fileURLToPath(new URL('./worker.ts', import.meta.url))
  const args = ['--import', 'tsx', '--conditions=latchkey-source', program, databaseUrl, cacheUrl, String(keys)]
  const child = spawn(process.execPath, [...args, String(seconds)], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, errors, [exitCode]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: '' })
  return out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Line)
}

/** What may happen to a cache, in turn. */
async function disturb(server: RedisServer, isOver: () => boolean): Promise<void> {
  const { client, close } = await openIoredis(server.url)
  const wrongBytes = async () => {
    const [first = '', second = ''] = await client.keys('lkc:*-*')
    const entry = await client.getBuffer(first)
    if (entry === null) return
    await client.set(second, entry, 'PX', 60_000)
    entry[entry.length - 2] = (entry.at(-2) ?? 0) ^ 4
    await client.set(first, entry, 'PX', 60_000)
  }
  const turns = [
    () => client.flushall(),
    wrongBytes,
    async () => {
      process.kill(server.pid, 'SIGSTOP')
      await pause(700)
      process.kill(server.pid, 'SIGCONT')
    },
    () => client.flushall(),
    async () => {
      await server.kill()
      await pause(200)
      await server.restart()
    },
  ]
  for (let turn = 0; !isOver(); turn += 1) {
    await pause(900)
    await turns[turn % turns.length]?.().catch(() => {})
  }
  await close()
}

async function forgetOften(forget: (key: string) => Promise<boolean | undefined>, isOver: () => boolean) {
  const forgets: Forget[] = []
  const loop = async (first: number) => {
    for (let n = first; !isOver(); n += 6) {
      const key = `k${n % keys}`
      const startMs = nowMs()
      const isSure = await forget(key)
      if (isSure !== undefined) forgets.push({ key, startMs, endMs: nowMs(), isSure })
      await pause(50)
    }
  }
  await Promise.all([0, 1, 2, 3, 4, 5].map(loop))
  return forgets
}

describeRedis(
  'a cache in front of PostgreSQL',
  own =>
    describePostgres('of several processes', database => {
      it('is never the reason for a second execution, or for an answer that the database would not give', async () => {
        const pool = new pg.Pool({ connectionString: database.url, max: 6 })
        const below = postgresStore({ pool })
        await below.migrate()
        await pool.query('create table runs (n serial primary key, key text not null)')
        const { client: cache, close } = await openIoredis(own.server.url)
        const store = tieredStore({ store: below, cache, operations: ['pay'] })
        const latchkey = createLatchkey({ store, scope: () => 'acme', telemetry: silentTelemetry, maintenance: false })

        let over = false
        const isOver = () => over
        const idOf = (key: string) => latchkey.identify({ scope: 'acme', operation: 'pay', key })
        const forgetting = forgetOften(async key => {
          const result = await store.forget(idOf(key), act).catch(() => false as const)
          if (result === false) return false
          return result.kind === 'forgotten' ? true : undefined
        }, isOver)
        const disturbing = disturb(own.server, isOver)
        const lines = (await Promise.all([1, 2, 3].map(() => worker(database.url, own.server.url)))).flat()
        over = true
        const [forgets] = await Promise.all([forgetting, disturbing])
        await latchkey.close()
        await Promise.all([close(), pool.end()])

        check(lines, forgets)
      }, 120_000)
    }),
  // Nothing may come back from before a crash.
  { appendonly: 'no' },
)

function check(lines: readonly Line[], forgets: readonly Forget[]): void {
  const runs = new Map(lines.filter(line => line.kind === 'ran').map(run => [run.n, run]))
  const answers = lines.filter(line => line.kind === 'answer')
  const hits = lines.filter(line => line.kind === 'figures').reduce((sum, figures) => sum + figures.hits, 0)
  expect(forgets.filter(({ isSure }) => isSure).length).toBeGreaterThan(5)
  expect(hits).toBeGreaterThan(100)
  for (let k = 0; k < keys; k += 1) {
    const ofKey = ({ key }: { readonly key: string }) => key === `k${k}`
    expect([...runs.values()].filter(ofKey).length).toBeLessThanOrEqual(1 + forgets.filter(ofKey).length)
  }
  const sure = forgets.filter(({ isSure }) => isSure)
  const wrong = answers.filter(answer => {
    const run = runs.get(answer.n)
    if (run === undefined || run.key !== answer.key) return true
    return sure.some(forget => forget.key === answer.key && forget.endMs < answer.startMs && run.atMs < forget.startMs)
  })
  expect(wrong).toEqual([])
}
