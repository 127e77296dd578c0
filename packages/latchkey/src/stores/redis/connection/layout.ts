/**
 * The keys in Redis.
 *
 *   lk:{ab}:k:<name> string   the row with its outcome, packed as in keys/packed-row.ts. Its name is short, because there are many: the other fifteen
 *                             bytes of the id in base64
 *   lk:{ab}:i:<id>   hash     the input and the steps of phased work
 *   lk:{ab}:v:<id>   hash     evidence
 *   lk:{ab}:a:<id>   list     what operators did
 *   lk:{ab}:l        zset     rows in progress, by the end of their leases
 *   lk:{ab}:q        zset     phased work that waits for a worker, by when it is due
 *   lk:{ab}:u        zset     unknown rows, with their operation, by since when they are
 *   lk:{ab}:w        zset     the same without the parked ones, by when their next look-up is due
 *   lk:{ab}:p        zset     parked rows, by since when they are
 *   lk:{ab}:x        zset     all rows, by their expiry
 *   lk:{ab}:f        string   the highest fence that was granted in the bucket
 *   lk:{ab}:d:<key>  string   which effect has this downstream key
 *   lk:{ab}:r:<name> hash     a message that was received; m: zset of them, by when
 *   lk:{ab}:g:<name> hash     the runs of a ledger comparison
 *
 * `ab` are the first two digits of the id: 256 buckets, for ever. The braces are Redis Cluster's: all keys of a bucket are in one slot, so
 * that a script may touch them together, and the buckets are spread over the servers.
 */
import { createHash } from 'node:crypto'

const ofIdentity = { row: 'k', journal: 'i', evidence: 'v', audit: 'a' } as const
const ofName = { effect: 'd', message: 'r', ledger: 'g' } as const
const ofBucket = {
  leases: 'l',
  queue: 'q',
  unknowns: 'u',
  lookups: 'w',
  parked: 'p',
  expiries: 'x',
  floor: 'f',
  messages: 'm',
} as const

type Single = keyof typeof ofIdentity | keyof typeof ofName
export type Index = keyof typeof ofBucket
export type Part = Single | Index

const singles: Readonly<Record<Single, string>> = { ...ofIdentity, ...ofName }

/** All that a transition of a row may touch. */
export const rowParts: readonly Part[] = [
  ...(['row', 'journal', 'evidence', 'audit'] as const),
  ...(['leases', 'queue', 'unknowns', 'lookups', 'parked', 'expiries', 'floor'] as const),
]

export const buckets: readonly string[] = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'))

/** `hex`: an id without its hyphens, or the two digits of a bucket where no part is of one identity. */
export function keysOf(prefix: string, hex: string, parts: readonly Part[]): string[] {
  const tag = `${prefix}:{${hex.slice(0, 2)}}:`
  return parts.map(part => (isIndex(part) ? tag + ofBucket[part] : `${tag}${singles[part]}:${nameOf(part, hex)}`))
}

/** The keys of one row after the other, for scripts that decide many. `id`: begins with the sixteen bytes of an id. */
export function rowKeysOf(prefix: string, parts: readonly Part[]): (ids: readonly Buffer[]) => string[] {
  // Those of a bucket are the same for all its rows.
  const ofBuckets = buckets.map(bucket => ({
    tag: `${prefix}:{${bucket}}:${ofIdentity.row}:`,
    indexes: keysOf(prefix, bucket, parts.slice(1)),
  }))
  return ids => {
    const keys: string[] = []
    for (const id of ids) {
      const bucket = ofBuckets[id[0] ?? 0]
      if (bucket !== undefined) keys.push(bucket.tag + id.toString('base64url', 1, idBytes), ...bucket.indexes)
    }
    return keys
  }
}

const idBytes = 16

function nameOf(part: Single, hex: string): string {
  return part === 'row' ? Buffer.from(hex.slice(2), 'hex').toString('base64url') : hex
}

function isIndex(part: Part): part is Index {
  return part in ofBucket
}

export function hexOf(uuid: string): string {
  return uuid.replaceAll('-', '')
}

/** The place of what has a name instead of an identity. */
export function hexOfName(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)
}
