/** What sections share: servers that are started when the first one needs them, the load generator, and how long to measure. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { installPostgres } from '../../test/servers/install-postgres.ts'
import { findPostgres } from '../../test/servers/postgres-binaries.ts'
import { type PostgresServer, startPostgres } from '../../test/servers/postgres.ts'
import { type LoadGenerator, startLoadGenerator } from './load/load-generator.ts'
import { bundlePrograms, type Programs } from './machine/bundle.ts'
import { type RedisServer, startRedis } from './machine/redis.ts'

export interface Context {
  readonly repetitions: number
  /** Shortens every run and every table; figures are then for development only. */
  readonly quick: boolean
  readonly programs: Programs
  readonly load: LoadGenerator
  postgres(): Promise<PostgresServer>
  redis(): Promise<RedisServer | { readonly missing: string }>
  /** The folder of the peers, with what they need installed. */
  peers(): string
  /** What has been started so far, for the conditions. */
  started(): { readonly postgres: boolean; readonly redis: RedisServer | undefined }
  close(): Promise<void>
}

/** As a small production server is set: more memory than the distribution's default, and all of its durability. */
const postgresSettings = { shared_buffers: '512MB', max_wal_size: '4GB', maintenance_work_mem: '512MB' }
const peersDirectory = fileURLToPath(new URL('../peers/', import.meta.url))

export async function openContext(options: { repetitions: number; quick: boolean }): Promise<Context> {
  const programs = await bundlePrograms()
  const load = await startLoadGenerator(programs.load)
  let postgres: Promise<PostgresServer> | undefined
  let redis: Promise<RedisServer | { missing: string }> | undefined
  let redisServer: RedisServer | undefined
  let installed = false
  return {
    ...options,
    programs,
    load,
    postgres: () => (postgres ??= openPostgres()),
    async redis() {
      const found = await (redis ??= startRedis())
      if (!('missing' in found)) redisServer = found
      return found
    },
    peers() {
      if (!installed) installPeers()
      installed = true
      return peersDirectory
    },
    started: () => ({ postgres: postgres !== undefined, redis: redisServer }),
    async close() {
      await load.stop()
      await redisServer?.stop()
      await (await postgres)?.stop()
    },
  }
}

function openPostgres(): Promise<PostgresServer> {
  if (findPostgres().kind === 'missing') {
    const installation = installPostgres()
    if (installation.kind === 'refused') throw new Error(`the benchmark needs PostgreSQL: ${installation.why}`)
  }
  return startPostgres({ settings: postgresSettings })
}

function installPeers(): void {
  if (existsSync(`${peersDirectory}node_modules/.package-lock.json`)) return
  console.log('bench: npm ci in bench/peers')
  execFileSync('npm', ['ci', '--ignore-scripts'], {
    cwd: peersDirectory,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 300_000,
  })
}
