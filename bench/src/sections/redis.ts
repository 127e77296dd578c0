/** Latchkey on Redis beside other libraries on the same Redis, the memory that a completed key takes there, and Redis as a cache of PostgreSQL. */
import { Redis } from 'ioredis'
import { redisStore } from 'latchkey/stores/redis'
import type { Context } from '../context.ts'
import { faultsOf, markdownTable, scenarioTable, settingsOf, withSpread } from '../report/table.ts'
import { measureScenario, type Run, type Scenario } from '../scenario.ts'
import type { Section } from '../section.ts'
import { guardedOperation, scope } from '../server/operations.ts'
import { figure } from '../statistics.ts'
import { type Comparison, comparisons } from './compare.ts'

const peers = ['node-idempotency-redis', 'powertools-redis', 'steadykey-redis'] as const

const newKeys: Scenario = {
  name: 'redis',
  subjects: ['bare', 'redis', ...peers],
  connections: [64],
  seconds: 1.2,
  starts: 2,
}

const replays: Scenario = {
  name: 'redis',
  subjects: ['bare', 'redis', 'node-idempotency-redis', 'powertools-redis', 'postgres', 'tiered'],
  connections: [64],
  seconds: 1,
  starts: 2,
  replayedKeys: 1_000,
}

/** Steadier than throughput where other programs use the machine. */
const cpu = (run: Run) => run.appUs + run.databaseUs

const newKeyFigures: Readonly<Record<string, Comparison>> = {
  'redis over bare': { of: 'redis', over: 'bare', what: 'throughput on Redis over the bare server' },
  ...Object.fromEntries(
    peers.map(peer => [`redis over ${peer}`, { of: 'redis', over: peer, what: `throughput over ${peer}` }]),
  ),
  'cpu over node-idempotency-redis': {
    of: 'redis',
    over: 'node-idempotency-redis',
    by: cpu,
    what: 'processor time of application and Redis per request, over node-idempotency-redis',
  },
  'app over bare': {
    of: 'redis',
    over: 'bare',
    by: run => run.appUs,
    combine: (a, b) => a - b,
    unit: 'µs',
    what: 'processor time per request that Redis adds to the application',
  },
}

const replayFigures: Readonly<Record<string, Comparison>> = {
  'replays over node-idempotency-redis': {
    of: 'redis',
    over: 'node-idempotency-redis',
    what: 'throughput of replays over node-idempotency-redis',
  },
  'replays over powertools-redis': {
    of: 'redis',
    over: 'powertools-redis',
    what: 'throughput of replays over powertools-redis',
  },
  'replays: cpu over node-idempotency-redis': {
    of: 'redis',
    over: 'node-idempotency-redis',
    by: cpu,
    what: 'processor time of application and Redis per replay, over node-idempotency-redis',
  },
  'tiered database over postgres': {
    of: 'tiered',
    over: 'postgres',
    by: run => run.databaseUs,
    what: "the database's processor time per replay, behind a cache in Redis over PostgreSQL alone",
  },
}

export const redis: Section = {
  name: 'redis',
  what: 'new keys and replays on Redis over other libraries on the same Redis, bytes per completed key, and Redis as a cache of PostgreSQL',
  async run(context) {
    const fresh = await measureScenario(newKeys, context)
    const again = await measureScenario(replays, context)
    const bytes = await measureBytes(context)
    const table = markdownTable(
      ['keys', 'bytes of memory per key, indexes included'],
      [[String(keysOf(context)), withSpread(bytes, 0)]],
    )
    return {
      markdown: [
        '### Redis: no work, 64 connections, new keys',
        scenarioTable(fresh),
        '### Redis: replays, 64 connections, every key completed before',
        scenarioTable(again),
        `### Redis: what a completed key with ${bodyBytes} bytes of body takes in memory`,
        table,
      ].join('\n\n'),
      figures: {
        ...comparisons(fresh, newKeyFigures),
        ...comparisons(again, replayFigures),
        ...(bytes.length === 0
          ? {}
          : {
              'bytes per key': figure(
                bytes,
                'B',
                `bytes of Redis per completed key with ${bodyBytes} bytes of body, indexes included`,
              ),
            }),
      },
      faults: [...faultsOf(fresh), ...faultsOf(again)],
      settings: [...new Set([...settingsOf(fresh), ...settingsOf(again)])],
      data: { fresh, again, bytes },
    }
  },
}

function keysOf({ quick }: Context): number {
  return quick ? 2_000 : 20_000
}

const bodyBytes = 170
const atOnce = 64

/** Empty where there is no Redis. */
async function measureBytes(context: Context): Promise<readonly number[]> {
  const server = await context.redis()
  if ('missing' in server) return []
  const found: number[] = []
  for (let repetition = 0; repetition < context.repetitions; repetition++) {
    const client = new Redis(server.freshDatabase())
    const backend = { store: redisStore({ client }) }
    const operation = guardedOperation(backend)
    // JSON puts quotes around it.
    const answer = 'y'.repeat(bodyBytes - 2)
    const complete = (key: string) => operation.run({ scope, key, input: {} }, () => answer)
    await complete('first')
    const before = await usedMemory(client)
    for (let from = 0; from < keysOf(context); from += atOnce) {
      await Promise.all(Array.from({ length: atOnce }, (_, n) => complete(`key-${from + n}`)))
    }
    const keys = Math.ceil(keysOf(context) / atOnce) * atOnce
    found.push(((await usedMemory(client)) - before) / keys)
    client.disconnect()
  }
  return found
}

/** Without the buffers of clients and of the log. */
async function usedMemory(client: Redis): Promise<number> {
  const text = String(await client.info('memory'))
  const bytes = (field: string) => Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(text)?.[1])
  return bytes('used_memory') - bytes('mem_clients_normal') - bytes('mem_aof_buffer')
}
