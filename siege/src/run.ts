/** One run: the application, the innocents and the enemies, each in its own process; then the rows are read. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { AppArgument, FromApp } from './app/app.ts'
import { bundle } from '../../test/programs/bundle.ts'
import { startRedisCache } from '../../test/servers/redis/redis-cache.ts'
import { randomFrom } from '../../torture/src/random.ts'
import { harmCache } from './harm-cache.ts'
import type { EnemiesArgument } from './enemies.ts'
import type { EnemyName } from './enemies/names.ts'
import type { Attacks, Evidence, Innocents } from './evidence.ts'
import type { Flags } from './flags.ts'
import type { InnocentsArgument } from './innocents.ts'
import { settledRows } from './keys/key-server.ts'
import { postgresKeys } from './keys/postgres-keys.ts'
import { redisKeys } from './keys/redis-keys.ts'
import { readRuns, runsById } from './app/runs.ts'

/**
 * Three thousand sockets and four thousand streams at the same time took 470 MB. One body of 400 MB held in memory takes more than
 * this limit.
 */
const peakMbMax = 640
/** The run has failed long before; it stops here to spare the machine. */
const abortMb = 1_800
/** The innocents start alone, so that the enemies meet an application at work. */
const headStartMs = 1_000
const settleMsMax = 90_000

export async function run({ store, seconds, seed, enemies: names }: Flags): Promise<Evidence> {
  const ending: (() => unknown)[] = []
  try {
    const directory = mkdtempSync(join(tmpdir(), 'latchkey-siege-'))
    ending.push(() => rmSync(directory, { recursive: true, force: true }))
    const programs = await bundle('siege', [new URL('app/app.ts', import.meta.url)])
    ending.push(() => programs.remove())
    const keys = await (store === 'redis' ? redisKeys() : postgresKeys())
    ending.push(() => keys.stop())
    const keysUrl = keys.url
    const cache = store === 'tiered' ? await startRedisCache() : undefined
    ending.push(() => cache?.stop())

    const runsFile = join(directory, 'runs')
    writeFileSync(runsFile, '')
    const app = await startApp(programs.pathOf('app'), { store, places: { keysUrl, cacheUrl: cache?.url }, runsFile })
    ending.push(() => app.stop())
    const { http, http2 } = app.ports
    const url = `http://127.0.0.1:${http}`
    const innocents = start<Innocents>('innocents.ts', { url, store, seed } satisfies InnocentsArgument)
    ending.push(() => innocents.child.kill('SIGKILL'))
    await delay(headStartMs)
    const http2Url = `http://127.0.0.1:${http2}`
    const asked: EnemiesArgument = { url, http2Url, store, keysUrl, seconds, seed, names }
    const enemies = start<Record<string, Attacks>>('enemies.ts', asked)
    ending.push(() => enemies.child.kill('SIGKILL'))

    const harm = cache && harmCache(cache, randomFrom(seed, 'cache'))
    // The rest is ended whatever became of the cache; its failure is told where the faults are counted.
    ending.push(() => harm?.stop().catch(() => {}))

    const heard = await Promise.race([enemies.result, app.tooLarge])
    const faults = await harm?.stop()
    if (innocents.child.connected) innocents.child.send('finish')
    const lived = (await innocents.result) ?? {
      requests: 0,
      acknowledged: [],
      losses: { 'everything: the process of the innocents died': 1 },
    }
    const rows = await settledRows(keys, settleMsMax)
    const { deaths, peakMb, cacheHits } = await app.stop()
    const runs = runsById([...readRuns(runsFile), ...(await keys.committed())])
    return {
      innocents: lived,
      enemies: heard ?? silent(names),
      runs,
      app: { deaths, peakMb, peakMbMax },
      cache: faults && { hits: cacheHits, faults },
      rows,
    }
  } finally {
    for (const end of ending.reverse()) await end()
  }
}

/** The run was cut short: what the enemies did is not known, so nothing is proven. */
function silent(names: readonly EnemyName[]): Evidence['enemies'] {
  return Object.fromEntries(names.map(name => [name, { attacks: 0, whole: 0, heard: {}, untrue: [] }]))
}

/** A process that sends one message, its result, when it is done; undefined if it died before. */
function start<Result>(script: string, argument: object): { child: ChildProcess; result: Promise<Result | undefined> } {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), [JSON.stringify(argument)], {
    execArgv: ['--import', 'tsx', '--conditions=latchkey-source'],
  })
  const result = new Promise<Result | undefined>(resolve => {
    child.once('message', message => resolve(message as Result))
    child.once('exit', () => resolve(undefined))
  })
  return { child, result }
}

interface App {
  readonly ports: { readonly http: number; readonly http2: number }
  /** Settles when its memory has grown so far that the run is over. */
  readonly tooLarge: Promise<undefined>
  stop(): Promise<{ readonly deaths: readonly string[]; readonly peakMb: number; readonly cacheHits: number }>
}

async function startApp(script: string, argument: AppArgument): Promise<App> {
  const child = fork(script, [JSON.stringify(argument)])
  const deaths: string[] = []
  let peakMb = 0
  let cacheHits = 0
  let stopping = false
  let giveUp = (_: undefined) => {}
  const tooLarge = new Promise<undefined>(resolve => (giveUp = resolve))
  child.on('exit', (code, signal) => {
    if (!stopping) deaths.push(signal === null ? `exit code ${code}` : signal)
    giveUp(undefined)
  })
  const ports = await new Promise<App['ports']>((resolve, reject) => {
    child.once('exit', () => reject(new Error('the application did not start')))
    child.on('message', (message: FromApp) => {
      if ('ports' in message) return resolve(message.ports)
      peakMb = Math.max(peakMb, message.peakMb)
      cacheHits = message.cacheHits
      if (peakMb > abortMb) giveUp(undefined)
    })
  })
  return {
    ports,
    tooLarge,
    async stop() {
      stopping = true
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit')
        child.kill('SIGTERM')
        await exited
      }
      return { deaths, peakMb, cacheHits }
    },
  }
}
