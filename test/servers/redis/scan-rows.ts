/** Every row that Latchkey has in a Redis server, read key by key: for checkers, which have the server for themselves. */
import type { Redis } from 'ioredis'

export interface ScannedRow {
  /** 32 hex digits. */
  readonly id: string
  /** As they were asked for. */
  readonly values: readonly (string | null)[]
}

/** s state · r recovery · cr crashes · lu locked until · sc scope · op operation · pk parked at · de description. */
export type ScannedField = 's' | 'r' | 'cr' | 'lu' | 'sc' | 'op' | 'pk' | 'de'

export async function scanRows(client: Redis, fields: readonly ScannedField[]): Promise<readonly ScannedRow[]> {
  const rows = new Map<string, ScannedRow>()
  for (let cursor = '0'; ;) {
    const [next, keys] = await client.scan(cursor, 'MATCH', 'lk:{*}:k:*', 'COUNT', 1_000)
    const found = await Promise.all(keys.map(key => client.getBuffer(key)))
    for (const [at, key] of keys.entries()) {
      const row = found[at] ?? null
      if (row === null) continue
      const read = fieldsOf(row)
      rows.set(key, { id: idOf(key), values: fields.map(field => read[field]) })
    }
    if (next === '0') return [...rows.values()]
    cursor = next
  }
}

/** The key of a row: its first byte is the bucket, the others are in base64. */
export function rowKey(hex: string): string {
  return `lk:{${hex.slice(0, 2)}}:k:${Buffer.from(hex.slice(2), 'hex').toString('base64url')}`
}

function idOf(key: string): string {
  const [, bucket = '', , name = ''] = /\{(..)\}:(k):(.*)$/.exec(key) ?? []
  return bucket + Buffer.from(name, 'base64url').toString('hex')
}

const inProgress = 1

/** As packed-row.ts of the store writes it. */
function fieldsOf(row: Buffer): Readonly<Record<ScannedField, string | null>> {
  const [, , scope = '', operation = '', json = ''] = placesOf(row).map(([from, to]) => row.toString('utf8', from, to))
  const more: { pk?: number; de?: string } = json === '' ? {} : JSON.parse(json)
  return {
    s: String(row[1]),
    r: String(row[2]),
    cr: String(row.readUInt32LE(7)),
    lu: row[1] === inProgress ? String(row.readDoubleLE(35)) : null,
    sc: scope,
    op: operation,
    pk: more.pk === undefined ? null : String(more.pk),
    de: more.de ?? null,
  }
}

/** Of call, fingerprint, scope, operation and more: behind a head of 67 bytes, each with its length before it. */
function placesOf(row: Buffer): readonly (readonly [from: number, to: number])[] {
  let at = 67
  return [1, 2, 2, 2, 4].map(bytes => {
    const from = at + bytes
    at = from + row.readUIntLE(at, bytes)
    return [from, at]
  })
}

/** Where the outcome begins. */
export function outcomePlace(row: Buffer): number {
  return placesOf(row).at(-1)?.[1] ?? row.length
}
