import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describeOwnPostgres, describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { inbox, type InboxResult, parkedMessages } from '../../src/inbox/index.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { act, newConsumer, order, quiet } from './fixture.ts'
import type { FromReceiver, ReceivingArgument, ToReceiver } from './receiving-process.ts'

const limitMs = 120_000
/** Short, so that a dead lease is seen soon; long enough that a busy machine does not lose a live one. */
const leaseMs = 3_000

describePostgres('processes that receive messages', database => {
  let pool: pg.Pool
  const children: ChildProcess[] = []

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 4 })
    await postgresStore({ pool }).migrate()
    await pool.query('create table effects (consumer text not null, message text not null)')
  })
  afterEach(async () => {
    for (const child of children.splice(0)) await kill(child)
  })
  afterAll(() => pool.end())

  async function start(argument: Pick<ReceivingArgument, 'kind' | 'consumer'>): Promise<ChildProcess> {
    const script = fileURLToPath(new URL('./receiving-process.ts', import.meta.url))
    const given: ReceivingArgument = { url: database.url, leaseMs, ...argument }
    const child = fork(script, [JSON.stringify(given)], {
      execArgv: ['--import', 'tsx', '--conditions=latchkey-source'],
    })
    children.push(child)
    await once(child, 'message')
    return child
  }

  async function effects(consumer: string): Promise<readonly string[]> {
    const text = 'select message from effects where consumer = $1 order by message'
    return (await pool.query<{ message: string }>(text, [consumer])).rows.map(({ message }) => message)
  }

  /** Delivered as a broker would, until it need not be delivered again. */
  async function deliverUntilEnded(child: ChildProcess, id: string, atMost = 200): Promise<InboxResult> {
    let result = await received(child, { kind: 'receive', id })
    for (let n = 1; n < atMost && result.kind === 'retry' && result.cause !== 'unknown'; n++) {
      await new Promise(resolve => setTimeout(resolve, 100))
      result = await received(child, { kind: 'receive', id })
    }
    return result
  }

  const atomicMoments = ['effect', 'atomic:before-commit', 'atomic:after-commit']
  it.each(atomicMoments)(
    'book an atomic message once whose process is killed at %s',
    async dieAt => {
      const consumer = newConsumer() + dieAt
      const victim = await start({ kind: 'atomic', consumer })
      await dies(victim, { kind: 'receive', id: '1', dieAt })
      const result = await deliverUntilEnded(await start({ kind: 'atomic', consumer }), '1')
      expect(result.kind).toBe(dieAt === 'atomic:after-commit' ? 'duplicate' : 'done')
      expect(await effects(consumer)).toEqual(['1'])
    },
    limitMs,
  )

  it.each([
    ['claim:after', 'retry', 0],
    ['effect', 'retry', 1],
    ['finish:before', 'retry', 1],
    ['finish:after', 'duplicate', 1],
  ] as const)(
    'run a held message never twice whose process is killed at %s',
    async (dieAt, kind, expected) => {
      const consumer = newConsumer() + dieAt
      await dies(await start({ kind: 'hold', consumer }), { kind: 'receive', id: '1', dieAt })
      const result = await deliverUntilEnded(await start({ kind: 'hold', consumer }), '1')
      expect(result).toMatchObject(kind === 'retry' ? { kind, cause: 'unknown' } : { kind })
      expect(await effects(consumer)).toHaveLength(expected)
    },
    limitMs,
  )

  it.each([
    ['claim:after', 'done', 1],
    ['effect', 'done', 2],
    ['finish:after', 'duplicate', 1],
  ] as const)(
    'lose no message that may be repeated, whose process is killed at %s',
    async (dieAt, kind, expected) => {
      const consumer = newConsumer() + dieAt
      await dies(await start({ kind: 'rerun', consumer }), { kind: 'receive', id: '1', dieAt })
      expect(await deliverUntilEnded(await start({ kind: 'rerun', consumer }), '1')).toEqual({ kind })
      expect(await effects(consumer)).toHaveLength(expected)
    },
    limitMs,
  )

  it.each(['atomic', 'hold', 'rerun'] as const)(
    'run a message once that two of them receive at the same moment (%s)',
    async kind => {
      const consumer = newConsumer() + kind
      const two = await Promise.all([start({ kind, consumer }), start({ kind, consumer })])
      for (const id of ['1', '2', '3', '4']) {
        const asked: ToReceiver = { kind: 'receive', id, slowMs: 200 }
        const results = await Promise.all(two.map(child => received(child, asked)))
        expect(results.filter(result => result.kind === 'done')).toHaveLength(1)
        expect(results.filter(result => result.kind !== 'done')).toMatchObject([
          { kind: expect.stringMatching(/^(retry|duplicate)$/) },
        ])
      }
      expect(await effects(consumer)).toEqual(['1', '2', '3', '4'])
    },
    limitMs,
  )

  it(
    'run each marked message in one of them',
    async () => {
      const consumer = newConsumer()
      const latchkey = quiet(postgresStore({ pool }))
      const parked = parkedMessages(latchkey)
      const { receive } = inbox(latchkey.atomic('book'), { consumer })
      const ids: string[] = []
      for (let n = 0; n < 20; n++) {
        const result = await receive(order(undefined, { order: n }), () => {})
        if (result.kind !== 'parked') throw new Error(`expected it to be parked, got ${result.kind}`)
        ids.push(result.id)
        await parked.redrive(result.id, act, { as: `order-${n}` })
      }
      const two = await Promise.all([start({ kind: 'atomic', consumer }), start({ kind: 'atomic', consumer })])
      const ran = (await Promise.all(two.map(child => redrivenBy(child)))).map(each => each.map(({ id }) => id))
      expect(ran.flat().toSorted()).toEqual(ids.toSorted())
      expect(ran.every(each => each.length > 0)).toBe(true)
      expect((await effects(consumer)).toSorted()).toEqual(ids.map((_, n) => `order-${n}`).toSorted())
      expect((await parked.list({ consumer })).messages).toEqual([])
      await latchkey.close()
    },
    limitMs,
  )

  it(
    'leave a marked message to another when they are killed with it, which books it once',
    async () => {
      const consumer = newConsumer()
      const latchkey = quiet(postgresStore({ pool }))
      const parked = parkedMessages(latchkey)
      const opened = inbox(latchkey.guarded('book', { onFailure: 'rerun', leaseMs }), { consumer })
      const result = await opened.receive(order(undefined), () => {})
      await parked.redrive(result.kind === 'parked' ? result.id : '', act, { as: '1' })
      const victim = await start({ kind: 'rerun', consumer })
      victim.send({ kind: 'redriven', slowMs: 60_000 } satisfies ToReceiver)
      await expect.poll(() => effects(consumer), { timeout: limitMs }).toEqual(['1'])
      await kill(victim)
      expect(await opened.redriven(() => {})).toEqual([])
      let runs = 0
      const again = () => opened.redriven(() => void (runs += 1))
      await expect.poll(again, { timeout: limitMs, interval: 200 }).toMatchObject([{ result: { kind: 'done' } }])
      expect(runs).toBe(1)
      expect((await parked.list({ consumer })).messages).toEqual([])
      await latchkey.close()
    },
    limitMs,
  )
})

describeOwnPostgres('messages while PostgreSQL is killed', own => {
  it(
    'are told to come again, and none is lost or run twice',
    async () => {
      const pool = new pg.Pool({ connectionString: own.server.url, max: 8 })
      pool.on('error', () => {})
      const store = postgresStore({ pool })
      await store.migrate()
      await pool.query('create table effects (message text not null)')
      const latchkey = quiet(store)
      const { receive } = inbox(latchkey.atomic('book'), { consumer: 'billing' })
      const waiting = Array.from({ length: 40 }, (_, n) => String(n))
      const causes = new Set<string>()
      let killed = false
      const deliver = async (id: string): Promise<void> => {
        // The store hands out clients of the pool.
        const result = await receive(order(id), ({ tx }) =>
          (tx as pg.PoolClient).query('insert into effects values ($1)', [id]),
        )
        if (result.kind === 'parked') throw new Error(`${id} was parked: ${result.cause}`)
        if (result.kind !== 'retry') return
        causes.add(result.cause)
        await new Promise(resolve => setTimeout(resolve, 100))
        waiting.push(id)
      }
      const keyless = () => receive(order(undefined), () => {})
      const until = performance.now() + limitMs
      while (waiting.length > 0 && performance.now() < until) {
        const batch = waiting.splice(0, 8).map(deliver)
        if (!killed) {
          killed = true
          await own.server.kill()
          // What cannot be parked stays with its broker, too.
          expect(await keyless()).toMatchObject({ kind: 'retry', cause: 'store-down' })
          setTimeout(() => void own.server.restart(), 1_000)
        }
        await Promise.all(batch)
      }
      expect(causes).toContain('store-down')
      await expect.poll(keyless, { timeout: limitMs }).toMatchObject({ kind: 'parked', cause: 'missing-key' })
      const { rows } = await pool.query<{ message: string }>('select message from effects')
      expect(rows.map(({ message }) => Number(message)).toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: 40 }, (_, n) => n),
      )
      await latchkey.close()
      await pool.end()
    },
    2 * limitMs,
  )
})

async function ask(child: ChildProcess, asked: ToReceiver): Promise<FromReceiver> {
  const answered = once(child, 'message')
  child.send(asked)
  const [answer] = (await answered) as [FromReceiver]
  return answer
}

async function received(child: ChildProcess, asked: ToReceiver): Promise<InboxResult> {
  const answer = await ask(child, asked)
  if (answer.kind !== 'received') throw new Error(`it told ${answer.kind}`)
  return answer.result
}

async function redrivenBy(child: ChildProcess) {
  const answer = await ask(child, { kind: 'redriven', slowMs: 20 })
  if (answer.kind !== 'redriven') throw new Error(`it told ${answer.kind}`)
  return answer.redriven
}

async function dies(child: ChildProcess, asked: ToReceiver): Promise<void> {
  const exited = once(child, 'exit')
  child.send(asked)
  expect(await exited).toEqual([null, 'SIGKILL'])
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
