/** Scripts through ioredis or node-redis: replies are the bytes that were stored. */
import { atEndOfTurn, type TurnEnd } from '../../../ports/clock.ts'
import type {
  ConnectionEvent,
  IoredisClient,
  NodeRedisBytes,
  NodeRedisClient,
  RedisArgument,
  RedisClient,
} from './driver.ts'

/** A Lua script. By its SHA-1 a server knows one that it was sent before. */
export interface ScriptText {
  readonly text: string
  readonly sha: string
}

/** How one client sends a script. */
export interface Sender {
  bySha(script: ScriptText, keys: string[], args: RedisArgument[]): Promise<unknown>
  byText(script: ScriptText, keys: string[], args: RedisArgument[]): Promise<unknown>
  /** Another one since a call was made: the client may have sent the call twice, and knows the reply to the last sending only. */
  readonly connection: number
  /** For the end of a turn: whatever `send` sends leaves at once, together. */
  inOneWrite(send: () => void): void
}

export function isIoredis(client: RedisClient): client is IoredisClient {
  return 'callBuffer' in client
}

export function senderOf(client: RedisClient): Sender {
  return isIoredis(client) ? throughIoredis(client) : throughNodeRedis(client)
}

function throughIoredis(client: IoredisClient): Sender {
  const { untilEndOfTurn, inOneWrite } = writeTogether(client)
  const call = (command: string, script: string, { keys, args }: { keys: string[]; args: RedisArgument[] }) => {
    untilEndOfTurn()
    return client.callBuffer(command, [script, String(keys.length), ...keys, ...args])
  }
  const connections = countOf(client, 'ready')
  return {
    get connection() {
      return connections.count
    },
    bySha: ({ sha }, keys, args) => call('evalsha', sha, { keys, args }),
    byText: ({ text }, keys, args) => call('eval', text, { keys, args }),
    inOneWrite,
  }
}

/**
 * ioredis writes each command by itself, and a small write costs the system as much as a large one: the socket holds the commands of one turn of
 * the event loop back, and they leave together. node-redis does so by itself.
 */
function writeTogether(client: IoredisClient): { untilEndOfTurn(): void; inOneWrite(send: () => void): void } {
  let held: IoredisClient['stream']
  function hold(): boolean {
    if (held !== undefined) return false
    const { stream } = client
    if (stream?.cork === undefined || stream.uncork === undefined) return false
    held = stream
    stream.cork()
    return true
  }
  function release(): void {
    const stream = held
    held = undefined
    stream?.uncork?.()
  }
  const turn: TurnEnd = { endOfTurn: release }
  return {
    untilEndOfTurn: () => void (hold() && atEndOfTurn(turn)),
    inOneWrite(send) {
      const isHeld = hold()
      send()
      if (isHeld) release()
    },
  }
}

interface EventCount {
  readonly count: number
}

/** One listener for each client, however many stores it has. */
const counts = new WeakMap<RedisClient, EventCount>()

function countOf(client: RedisClient, event: ConnectionEvent): EventCount {
  const known = counts.get(client)
  if (known !== undefined) return known
  const counted = { count: 0 }
  client.on(event, () => (counted.count += 1))
  counts.set(client, counted)
  return counted
}

/** The code of a bulk string in RESP: replies of this kind stay bytes. */
const bulkString = 36

function throughNodeRedis(client: NodeRedisClient): Sender {
  // Without the mapping, bytes are decoded as UTF-8, which destroys what is none.
  const bytes = client.withTypeMapping({ [bulkString]: Buffer } as never) as NodeRedisBytes
  // It fails a call whose connection broke. Only that of sentinels sends it again, to the master that it finds then.
  const masters = countOf(client, 'topology-change')
  return {
    get connection() {
      return masters.count
    },
    bySha: ({ sha }, keys, args) => bytes.evalSha(sha, { keys, arguments: args }),
    byText: ({ text }, keys, args) => bytes.eval(text, { keys, arguments: args }),
    inOneWrite: send => send(),
  }
}
