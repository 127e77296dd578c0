import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { forkProgram } from '../../../../test/programs/program.ts'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import type { Asked, Asking, AskingArgument } from './asking-process.ts'

const perMinute = 300
/** A tenth of the limit. */
const lease = 30
const limitMs = 120_000

describePostgres('processes that share a limit on PostgreSQL', database => {
  let pool: pg.Pool
  const children: ChildProcess[] = []

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 2 })
    await postgresStore({ pool }).migrate()
  })
  afterEach(async () => {
    for (const child of children.splice(0)) await kill(child)
  })
  afterAll(() => pool.end())

  async function start(count: number): Promise<readonly ChildProcess[]> {
    const argument: AskingArgument = { url: database.url, newKeysPerMinute: perMinute }
    const program = new URL('./asking-process.ts', import.meta.url)
    const starting = Array.from({ length: count }, () => forkProgram(program, [JSON.stringify(argument)]))
    const started = await Promise.all(starting)
    children.push(...started)
    await Promise.all(started.map(child => once(child, 'message')))
    return started
  }

  async function ask(child: ChildProcess, asking: Asking): Promise<Asked> {
    const answered = once(child, 'message')
    child.send(asking)
    const [asked] = (await answered) as [Asked]
    return asked
  }

  /** All of them at once, until each is refused; and the most that may have run. */
  async function exhaust(processes: readonly ChildProcess[], scope: string) {
    const beganAt = performance.now()
    const asked = await Promise.all(processes.map(child => ask(child, { scope })))
    const refilled = Math.ceil(((performance.now() - beganAt) * perMinute) / 60_000)
    const sum = (of: keyof Asked) => asked.reduce((total, each) => total + each[of], 0)
    return { ran: sum('ran'), refused: sum('refused'), refilled }
  }

  async function rowsOf(scope: string): Promise<number> {
    const { rows } = await pool.query<{ n: string }>('select count(*) as n from latchkey.keys where scope = $1', [
      scope,
    ])
    return Number(rows[0]?.n)
  }

  it(
    'are granted together what one of them would be, and what is refused reserves nothing',
    async () => {
      const { ran, refused, refilled } = await exhaust(await start(3), 'three')
      expect(ran).toBeLessThanOrEqual(perMinute + refilled)
      expect(ran).toBeGreaterThan(perMinute - 3 * lease)
      expect(refused).toBe(3 * 8)
      expect(await rowsOf('three')).toBe(ran)
    },
    limitMs,
  )

  it(
    'lose at most one lease with a process that is killed',
    async () => {
      const [victim, ...others] = await start(3)
      if (victim === undefined) throw new Error('three were started')
      expect(await ask(victim, { scope: 'killed', times: 1 })).toEqual({ ran: 1, refused: 0 })
      await kill(victim)
      const { ran, refilled } = await exhaust(others, 'killed')
      expect(ran).toBeLessThanOrEqual(perMinute - lease + refilled + 1)
      expect(ran).toBeGreaterThanOrEqual(perMinute - lease)
    },
    limitMs,
  )

  it(
    'limit by themselves while the table of buckets is not there, and serve on',
    async () => {
      const [one] = await start(1)
      if (one === undefined) throw new Error('one was started')
      await pool.query('alter table latchkey.limit_buckets rename to hidden')
      expect(await ask(one, { scope: 'hidden', times: 20 })).toEqual({ ran: 20, refused: 0 })
      const { ran, refilled } = await exhaust([one], 'hidden')
      expect(ran).toBeLessThanOrEqual(perMinute + refilled)
      await pool.query('alter table latchkey.hidden rename to limit_buckets')
    },
    limitMs,
  )
})

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
