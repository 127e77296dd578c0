/** Latchkey's rows in a Redis of their own, read key by key. The shop's rows stay in PostgreSQL. */
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { startRedis } from '../../../test/servers/redis/redis-server.ts'
import { scanRows } from '../../../test/servers/redis/scan-rows.ts'
import type { KeyRow, Proof } from '../check/facts.ts'
import type { KeyFacts, KeyServer, LastWord, UnknownRow } from './key-server.ts'

const states: readonly KeyRow['state'][] = ['pending', 'in_progress', 'completed', 'failed_retryable', 'unknown']
const buckets = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'))
/** Unknown rows that are settled sooner are missed: look-ups come later than this, and "never happened" much later. */
const watchEveryMs = 500

export async function redisKeys(): Promise<KeyServer> {
  const server = await startRedis({ appendfsync: 'always' })
  const client = new Redis(server.url, { maxRetriesPerRequest: 1, retryStrategy: () => 100 })
  client.on('error', () => {})
  const watch = watchUnknowns(client)
  return {
    url: server.url,
    lastWord: answer,
    kill: () => server.kill(),
    restart: () => server.restart(),
    moving: async () => (await readRows(client)).filter(isMoving).length,
    oldestUnknown: async () => (await readUnknowns(client).catch(() => []))[0],
    readFacts: () => readFacts(client, watch.seen),
    async stop() {
      await watch.stop()
      client.disconnect()
      await server.stop()
    },
  }
}

/** The script that ends an operation is given the handler's answer, and each answer here has a nonce. */
const answer: LastWord = { name: 'answer', isIn: bytes => bytes.includes('"nonce"') }

interface Row {
  readonly id: string
  readonly state: number
  readonly recovery: string | null
  readonly parked: string | null
  readonly lockedUntil: string | null
  readonly crashes: number
  readonly operation: string
  readonly description: string | null
}

/** Owned, waiting for a worker, being looked up, or to be resumed. */
function isMoving({ state, recovery, parked }: Row): boolean {
  return parked === null && (state === 0 || state === 1 || state === 4 || (state === 3 && recovery === '2'))
}

async function readRows(client: Redis): Promise<readonly Row[]> {
  const found = await scanRows(client, ['s', 'r', 'pk', 'lu', 'cr', 'op', 'de'])
  return found.map(({ id, values: [state, recovery, parked, lockedUntil, crashes, operation, description] }) => ({
    id,
    state: Number(state),
    recovery: recovery ?? null,
    parked: parked ?? null,
    lockedUntil: lockedUntil ?? null,
    crashes: Number(crashes ?? 0),
    operation: operation ?? '',
    description: description ?? null,
  }))
}

async function readFacts(client: Redis, seen: ReadonlyMap<string, Unknown>): Promise<KeyFacts> {
  const [seconds] = await client.time()
  const rows = await readRows(client)
  const keyOf = new Map(rows.map(({ id, description }) => [id, description ?? id]))
  const listed = new Set((await readIndex(client, 'w')).map(({ id }) => id))
  const keys = rows.map(({ id, state, operation, parked, lockedUntil, crashes }): KeyRow => {
    const leaseDead = lockedUntil !== null && Number(lockedUntil) < Number(seconds) * 1_000
    const facts = { parked: parked !== null, leaseDead, crashes, listed: listed.has(id) }
    return { key: keyOf.get(id) ?? id, operation, state: states[state] ?? 'unknown', ...facts }
  })
  const proofs: Proof[] = []
  for (const { id } of rows) proofs.push(...(await readProofs(client, id, keyOf.get(id) ?? id)))
  const unknowns = [...seen.values()].map(({ id, since }) => ({ key: keyOf.get(id) ?? id, since }))
  return { keys, proofs, unknowns, parkedReceipts: [] }
}

/** Evidence is packed: only the server can read it. */
const proofsScript = `local found = {}
for place = 1, tonumber(redis.call('HGET', KEYS[1], 'n') or 0) do
  local packed = redis.call('HGET', KEYS[1], place)
  local entry = packed and cmsgpack.unpack(packed)
  if entry then
    found[#found + 1] = cjson.encode({ source = entry.s, verdict = entry.v, applied = entry.a == 1, at = entry.t, epoch = entry.e })
  end
end
return found`

async function readProofs(client: Redis, id: string, key: string): Promise<readonly Proof[]> {
  // The script returns a list of texts.
  const found = (await client.eval(proofsScript, 1, `lk:{${id.slice(0, 2)}}:v:${id}`)) as readonly string[]
  return found.map(text => {
    const { epoch, ...proof }: Omit<Proof, 'key' | 'epoch'> & { epoch?: number } = JSON.parse(text)
    return { ...proof, key, epoch: epoch ?? null }
  })
}

interface Unknown extends UnknownRow {
  readonly since: number
}

/** Members are the sixteen bytes of an id and the operation's name, by when they are due or since when they are unknown. */
async function readIndex(client: Redis, index: 'u' | 'w'): Promise<readonly Unknown[]> {
  const replies = await Promise.all(
    buckets.map(bucket => client.zrangeBuffer(`lk:{${bucket}}:${index}`, 0, -1, 'WITHSCORES')),
  )
  return replies.flatMap(flat =>
    flat.flatMap((member, at) => {
      const hex = member.toString('hex', 0, 16)
      const operation = member.toString('utf8', 16)
      return at % 2 === 0 ? [{ id: hex, operation, since: Number(flat[at + 1]?.toString()) }] : []
    }),
  )
}

async function readUnknowns(client: Redis): Promise<readonly UnknownRow[]> {
  const found = [...(await readIndex(client, 'u'))].sort((one, other) => one.since - other.since)
  return found.map(({ id, operation }) => ({ id: uuidOf(id), operation }))
}

/** When a row became unknown, seen from outside, by the server's own clock. */
function watchUnknowns(client: Redis): { readonly seen: ReadonlyMap<string, Unknown>; stop(): Promise<void> } {
  const seen = new Map<string, Unknown>()
  let stopped = false
  const watching = (async () => {
    while (!stopped) {
      const found = await readIndex(client, 'u').catch(() => [])
      for (const unknown of found) seen.set(`${unknown.id} ${unknown.since}`, unknown)
      await delay(watchEveryMs)
    }
  })()
  return {
    seen,
    async stop() {
      stopped = true
      await watching
    },
  }
}

function uuidOf(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
