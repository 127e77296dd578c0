/** Scripts through ioredis or node-redis: replies are the bytes that were stored. */
import { atEndOfTurn, type TurnEnd } from '../../../ports/clock.ts'
import type { IoredisClient, NodeRedisBytes, NodeRedisClient, RedisArgument, RedisClient } from './driver.ts'

/** A Lua script. By its SHA-1 a server knows one that it was sent before. */
export interface ScriptText {
  readonly text: string
  readonly sha: string
}

/** How one client sends a script. */
export interface Sender {
  bySha(script: ScriptText, keys: string[], args: RedisArgument[]): Promise<unknown>
  byText(script: ScriptText, keys: string[], args: RedisArgument[]): Promise<unknown>
}

export function isIoredis(client: RedisClient): client is IoredisClient {
  return 'callBuffer' in client
}

export function senderOf(client: RedisClient): Sender {
  return isIoredis(client) ? throughIoredis(client) : throughNodeRedis(client)
}

function throughIoredis(client: IoredisClient): Sender {
  const together = writeTogether(client)
  const call = (command: string, script: string, { keys, args }: { keys: string[]; args: RedisArgument[] }) => {
    together()
    return client.callBuffer(command, [script, String(keys.length), ...keys, ...args])
  }
  return {
    bySha: ({ sha }, keys, args) => call('evalsha', sha, { keys, args }),
    byText: ({ text }, keys, args) => call('eval', text, { keys, args }),
  }
}

/**
 * ioredis writes each command by itself, and a small write costs the system as much as a large one: the socket holds the commands of one turn of
 * the event loop back, and they leave together. node-redis does so by itself.
 */
function writeTogether(client: IoredisClient): () => void {
  let held: IoredisClient['stream']
  const uncork: TurnEnd = {
    endOfTurn() {
      const stream = held
      held = undefined
      stream?.uncork?.()
    },
  }
  return () => {
    if (held !== undefined) return
    const { stream } = client
    if (stream?.cork === undefined || stream.uncork === undefined) return
    held = stream
    stream.cork()
    atEndOfTurn(uncork)
  }
}

/** The code of a bulk string in RESP: replies of this kind stay bytes. */
const bulkString = 36

function throughNodeRedis(client: NodeRedisClient): Sender {
  // Without the mapping, bytes are decoded as UTF-8, which destroys what is none.
  const bytes = client.withTypeMapping({ [bulkString]: Buffer } as never) as NodeRedisBytes
  return {
    bySha: ({ sha }, keys, args) => bytes.evalSha(sha, { keys, arguments: args }),
    byText: ({ text }, keys, args) => bytes.eval(text, { keys, arguments: args }),
  }
}
