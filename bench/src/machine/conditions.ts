/** The conditions of a run. A figure without them is worth nothing. */
import { execFileSync } from 'node:child_process'
import { cpus, totalmem } from 'node:os'
import { findPostgres } from '../../../test/servers/postgres-binaries.ts'
import { programFlags } from './child.ts'
import { type RedisServer, redisSettings } from './redis.ts'

export interface Conditions {
  readonly date: string
  readonly machine: string
  readonly cores: number
  readonly node: string
  readonly postgres: string
  readonly redis: string
  readonly repetitions: number
  readonly quick: boolean
  readonly commit: string
}

export function conditionsOf(options: {
  repetitions: number
  quick: boolean
  redis: RedisServer | undefined
}): Conditions {
  const found = findPostgres()
  const [processor] = cpus()
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: `${processor?.model ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}`,
    cores: cpus().length,
    node: process.version,
    postgres: found.kind === 'found' ? found.version : 'none',
    redis: options.redis === undefined ? 'not used' : `${options.redis.version} (${redisSettings})`,
    repetitions: options.repetitions,
    quick: options.quick,
    commit: currentCommit(),
  }
}

export function conditionsSentence(conditions: Conditions): string {
  const { machine, cores, node, postgres, redis, repetitions, quick, date } = conditions
  return [
    quick ? 'A quick run for development, not to be quoted.' : '',
    `Measured on ${date}: ${cores} cores (${machine}) shared by load generator, application and database over loopback;`,
    `Node ${node} ${programFlags.join(' ')}, PostgreSQL ${postgres}, Redis ${redis};`,
    `medians of ${repetitions} interleaved repetitions.`,
  ]
    .join(' ')
    .trim()
}

function currentCommit(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    // A tarball has none.
    return 'unknown'
  }
}
