/** What is due in an index, from all buckets: the way in for every worker, without a scan of keys. */
import type { Index } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { bytesOf, listOf, numberOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import type { Reply } from '../../shared/redis/driver.ts'
import { idOf } from './row.ts'

export interface DueRow {
  readonly id: string
  readonly atMs: number
  /** Of an unknown row. */
  readonly operation: string
}

/** Of one bucket. More are found the next time: 256 buckets times this is more than a worker does in one turn. */
const rowsMax = 256

function dueScript(index: Index): Script {
  return {
    flags: 'no-writes',
    parts: [index],
    args: ['limit'],
    body: `return redis.call('ZRANGEBYSCORE', ${index}, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)`,
  }
}

function allScript(index: Index): Script {
  return {
    flags: 'no-writes',
    parts: [index],
    args: ['limit'],
    body: `return redis.call('ZRANGE', ${index}, 0, limit - 1, 'WITHSCORES')`,
  }
}

type Worked = 'leases' | 'queue' | 'lookups' | 'expiries' | 'unknowns'

const scripts: Readonly<Record<Worked, Script>> = {
  leases: dueScript('leases'),
  queue: dueScript('queue'),
  lookups: dueScript('lookups'),
  expiries: dueScript('expiries'),
  unknowns: allScript('unknowns'),
}

/** Longest waiting first. `unknowns`: all of them. */
export async function dueRows(link: Link, index: Worked): Promise<readonly DueRow[]> {
  const replies = await link.runInAll(scripts[index], [String(rowsMax)])
  const rows = replies.flatMap(reply => {
    const flat = listOf(reply)
    return flat.flatMap((member, at) => (at % 2 === 0 ? [dueRow(member, flat[at + 1])] : []))
  })
  return rows.toSorted((one, other) => one.atMs - other.atMs)
}

const idBytes = 16

export function dueRow(member: Reply, score: Reply | undefined): DueRow {
  return { id: idOf(member), atMs: numberOf(score), operation: bytesOf(member).toString('utf8', idBytes) }
}
