/** Messages that were received, by their source's names for them. They are remembered apart from the rows they are about, and longer. */
import { hexOfName } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { bytesOf, isNil, listOf, numberOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import type { Reply } from '../driver.ts'

export interface Message {
  readonly source: string
  readonly ref: string
  readonly signedAtMs: number
}

const readScript: Script = {
  flags: 'no-writes',
  parts: ['message'],
  args: [],
  body: `return redis.call('HMGET', message, 'at', 'signed')`,
}

const receiveScript: Script = {
  flags: 'allow-oom',
  parts: ['message', 'messages'],
  args: ['name', 'at', 'signedAt'],
  body: `
if redis.call('HSETNX', message, 'at', at) == 1 then redis.call('ZADD', messages, at, name) end
local signed = redis.call('HGET', message, 'signed')
if not signed or tonumber(signed) < tonumber(signedAt) then redis.call('HSET', message, 'signed', signedAt) end
return 1`,
}

const signed = ({ signedAtMs }: Message) => String(Math.floor(signedAtMs))

/** When the message came for the first time, if it did. `replayed`: this delivery is known, so it was recorded and sent again. */
export async function firstReceived(link: Link, message: Message): Promise<number | 'replayed' | undefined> {
  const [at, known] = listOf(await link.runAt(readScript, hexOfName(message.source, message.ref)))
  if (isNil(at)) return undefined
  return Number(signed(message)) <= numberOf(known) ? 'replayed' : numberOf(at)
}

/** Also where there is no row: a row that begins later is not what the message is about. */
export async function receive(link: Link, message: Message, atMs: number): Promise<void> {
  const name = hexOfName(message.source, message.ref)
  await link.runAt(receiveScript, name, [Buffer.from(name, 'hex'), String(atMs), signed(message)])
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
