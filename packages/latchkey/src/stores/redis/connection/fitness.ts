/**
 * Whether the server keeps what it is given: its version, its role, its eviction policy and its log, as INFO shows them. INFO and not CONFIG, which many
 * users may not call. Checked at the start, after every reconnect, with every sweep, and after a write that a replica refused: a failover may have
 * brought another server.
 */
import { errorText, isError, LatchkeyError } from '../../../ports/errors.ts'
import type { StoreObserver } from '../../../ports/store-observer.ts'
import type { StoreCheck, StoreFault } from '../../../ports/store.ts'
import type { RedisClient } from '../../shared/redis/driver.ts'
import { isReadOnly } from './errors.ts'
import type { Link } from './link.ts'
import { textOf } from './reply.ts'
import type { Script } from './script.ts'

/** The key is there to be routed by: a cluster has a server for each slot. */
const infoScript: Script = {
  flags: 'no-writes',
  parts: ['floor'],
  args: [],
  body: `return redis.call('INFO', 'server', 'memory', 'persistence', 'replication')`,
}

const oldestMajor = 7

export interface Fitness {
  /** A written answer survives a crash of the server: every server that was asked last writes a log. */
  readonly durable: boolean
  check(): Promise<StoreCheck>
  /** Before a grant: rejects while the server is not fit. Undefined: it is, as far as is known. */
  ensure(): Promise<void> | undefined
  /** A call failed: whether it was by the server's role. */
  failed(error: unknown): void
  observe(observer: StoreObserver): void
}

export interface FitnessOptions {
  readonly link: Link
  readonly client: RedisClient
  readonly isCluster: boolean
  readonly allowEviction: boolean
}

export function fitnessOf({ link, client, isCluster, allowEviction }: FitnessOptions): Fitness {
  let isFit = false
  // As the guide sets the server up, until it says otherwise.
  let durable = true
  let running: Promise<StoreCheck> | undefined
  let observer: StoreObserver | undefined
  /** Of the servers that answered last. Empty: none has yet. */
  let runIds: ReadonlySet<string> = new Set()
  for (const event of ['ready', 'node-ready', '+node', 'topology-change'] as const)
    client.on(event, () => (isFit = false))

  async function ask(): Promise<StoreCheck> {
    try {
      const infos = await readInfos(link, isCluster)
      noteServers(new Set(infos.map(info => info.get('run_id') ?? '')))
      const fault = infos.map(info => faultOf(info, allowEviction)).find(each => each !== undefined)
      durable = infos.every(hasLog)
      isFit = fault === undefined
      return fault ?? (durable ? { kind: 'fit' } : { kind: 'fit', warning: withoutLog })
    } catch (error) {
      const fault = tooOldFrom(error)
      if (fault !== undefined) return fault
      throw error
    }
  }

  /** A server has an id for as long as it runs. */
  function noteServers(now: ReadonlySet<string>): void {
    const isFirst = runIds.size === 0
    for (const id of now) if (!isFirst && !runIds.has(id)) observer?.failover()
    runIds = now
  }

  function check(): Promise<StoreCheck> {
    running ??= ask().finally(() => (running = undefined))
    return running
  }

  async function refuseUnfit(): Promise<void> {
    let found: StoreCheck
    try {
      found = await check()
    } catch (error) {
      throw new LatchkeyError('store-unavailable', errorText(error), { cause: error, sent: false })
    }
    if (found.kind !== 'fit') throw new LatchkeyError(`store-${found.kind}`, found.message)
  }

  return {
    get durable() {
      return durable
    },
    check,
    ensure: () => (isFit ? undefined : refuseUnfit()),
    failed(error) {
      const cause = isError(error) ? error.cause : undefined
      if (isReadOnly(cause)) isFit = false
    },
    observe(given) {
      observer = given
    },
  }
}

type Info = ReadonlyMap<string, string>

/** Of every server that has a bucket. */
async function readInfos(link: Link, isCluster: boolean): Promise<readonly Info[]> {
  const replies = isCluster ? await link.runInAll(infoScript) : [await link.runAt(infoScript, '00')]
  const infos = replies.map(reply => parseInfo(textOf(reply)))
  return [...new Map(infos.map(info => [info.get('run_id'), info])).values()]
}

function parseInfo(text: string): Info {
  const lines = text.split('\r\n').filter(line => line.includes(':'))
  return new Map(lines.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

function faultOf(info: Info, allowEviction: boolean): StoreFault | undefined {
  const place = `${info.get('tcp_port') === undefined ? '' : ` on port ${info.get('tcp_port')}`}`
  const version = info.get('redis_version') ?? ''
  if (Number.parseInt(version, 10) < oldestMajor) return tooOld(version)
  if (info.get('role') === 'slave') {
    const master = `${info.get('master_host')}:${info.get('master_port')}`
    const message = `the Redis server${place} is a replica of ${master}: connect to the master; with Sentinel, give the client the master's name`
    return { kind: 'read-only', message }
  }
  const policy = info.get('maxmemory_policy') ?? 'noeviction'
  if (policy === 'noeviction' || info.get('maxmemory') === '0' || allowEviction) return undefined
  const message = `the Redis server${place} evicts keys (maxmemory-policy ${policy}): an evicted key runs twice. Set maxmemory-policy noeviction, or accept it with redisStore({ allowEviction: true })`
  return { kind: 'unsafe', message }
}

function hasLog(info: Info): boolean {
  return info.get('aof_enabled') === '1'
}

const withoutLog =
  'the Redis server writes no append-only file: what was claimed and answered since its last snapshot is lost when it crashes. Set appendonly yes'

function tooOld(version: string): StoreFault {
  return {
    kind: 'too-old',
    message: `Redis ${oldestMajor}.0 or later is needed (found ${version}): upgrade the server`,
  }
}

/** A server before 7.0 does not know the first line of a script. */
function tooOldFrom(error: unknown): StoreFault | undefined {
  return errorText(error).includes('compiling script') ? tooOld('an older one') : undefined
}
