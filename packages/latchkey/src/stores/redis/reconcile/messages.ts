/** Messages that were received, by their source's names for them. They are remembered apart from the rows they are about, and longer. */
import { systemClock } from '../../../ports/clock.ts'
import { hexOfName } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { bytesOf, isNil, listOf, numberOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import type { Reply } from '../../shared/redis/driver.ts'

export interface Message {
  readonly source: string
  readonly ref: string
  readonly signedAtMs: number
}

/** The first delivery says when the message came, and the latest signature what is news. Sent twice by the client, it is one call. */
const receiveScript: Script = {
  flags: 'allow-oom',
  parts: ['message', 'messages'],
  args: ['name', 'signedAt', 'call'],
  body: `
local at, signed, lastCall = unpack(redis.call('HMGET', message, 'at', 'signed', 'call'))
if signed and tonumber(signedAt) <= tonumber(signed) and call ~= lastCall then return false end
if not at then
  at = now
  redis.call('ZADD', messages, at, name)
end
redis.call('HSET', message, 'at', at, 'signed', signedAt, 'call', call)
return tonumber(at)`,
}

/**
 * When the message came for the first time; `undefined`: this delivery is known, so it was recorded and sent again. Also where there is no row: a row
 * that begins later is not what the message is about.
 */
export async function receive(link: Link, { source, ref, signedAtMs }: Message): Promise<number | undefined> {
  const name = hexOfName(source, ref)
  const args = [Buffer.from(name, 'hex'), String(Math.floor(signedAtMs)), systemClock.randomId()]
  const reply = await link.runAt(receiveScript, name, args)
  return isNil(reply) ? undefined : numberOf(reply)
}

const oldScript: Script = {
  flags: 'no-writes',
  parts: ['messages'],
  args: ['olderThanMs', 'limit'],
  body: `return redis.call('ZRANGEBYSCORE', messages, '-inf', now - olderThanMs, 'LIMIT', 0, limit)`,
}

const forgetScript: Script = {
  flags: 'allow-oom',
  parts: ['message', 'messages'],
  args: ['name'],
  body: `
redis.call('DEL', message)
return redis.call('ZREM', messages, name)`,
}

export async function forgetDeliveries(
  link: Link,
  { olderThanMs, limit }: { olderThanMs: number; limit: number },
): Promise<number> {
  const found = await link.runInAll(oldScript, [String(Math.ceil(olderThanMs)), String(limit)])
  const names = found.flatMap(listOf).slice(0, limit).map(bytesOf)
  const forgotten = await Promise.all(names.map(name => link.runAt(forgetScript, name.toString('hex'), [name])))
  return forgotten.reduce((sum: number, reply: Reply) => sum + numberOf(reply), 0)
}
