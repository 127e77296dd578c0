/** Tokens that processes share, each lease in the write transaction of its call; and what a scope has stored. */
import type { Leased, Quotas, ScopeRows, Tokens } from '../../../ports/faculties/quotas.ts'
import { stateCodes } from '../../shared/codes.ts'
import { credit, debit, type StoredBucket } from '../../shared/token-bucket.ts'
import type { Database } from '../connection/database.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'

export function sqliteQuotas(database: Database): Quotas {
  return {
    lease: asked => database.write(handle => lease(handle, asked)),
    giveBack: unused => database.write(handle => giveBack(handle, unused)),
    prune: ({ limit }) => database.write(handle => handle.run(pruneSql, [readNowMs(handle), limit])),
    openKeys: ({ max, ...which }) => database.read(handle => openKeys(handle, which, max)),
    storedBytes: which => database.read(handle => storedBytes(handle, which)),
  }
}

const bucketSql = 'SELECT tokens, filled_at_ms, full_at_ms FROM latchkey_limit_buckets WHERE bucket = ?1'
const putSql = 'REPLACE INTO latchkey_limit_buckets (bucket, tokens, filled_at_ms, full_at_ms) VALUES (?1, ?2, ?3, ?4)'
const pruneSql = `
  DELETE FROM latchkey_limit_buckets WHERE bucket IN (
    SELECT b.bucket FROM latchkey_limit_buckets AS b WHERE b.full_at_ms <= ?1 LIMIT ?2)`

function lease(handle: Handle, asked: Tokens): Leased {
  const { bucket, leased } = debit(readBucket(handle, asked.bucket), asked, readNowMs(handle))
  putBucket(handle, asked.bucket, bucket)
  return leased
}

function giveBack(handle: Handle, unused: Tokens): void {
  const stored = readBucket(handle, unused.bucket)
  if (stored !== undefined) putBucket(handle, unused.bucket, credit(stored, unused, readNowMs(handle)))
}

function readBucket(handle: Handle, bucket: string): StoredBucket | undefined {
  const [row] = handle.rows(bucketSql, [bucket])
  if (row === undefined) return undefined
  return { tokens: Number(row.tokens), filledAtMs: Number(row.filled_at_ms), fullAtMs: Number(row.full_at_ms) }
}

function putBucket(handle: Handle, bucket: string, { tokens, filledAtMs, fullAtMs }: StoredBucket): void {
  handle.run(putSql, [bucket, tokens, filledAtMs, fullAtMs])
}

/** Read in one turn of the event loop, which every other request waits for: some milliseconds. */
const rowsMax = 10_000
/** Counted in the index alone. */
const countedMax = 100_000

/** The newest, which the index on the scope has last: what is open is rarely old. */
const newest = (columns: string) =>
  `SELECT ${columns} FROM latchkey_keys AS k WHERE k.scope = ?1 ORDER BY k.rowid DESC LIMIT ${rowsMax}`

const openSql = `
  SELECT COUNT(*) AS open FROM (
    SELECT 1 FROM (${newest('k.state, k.operation')}) AS k
    WHERE k.state <> ${stateCodes.completed} AND (?2 IS NULL OR k.operation = ?2) LIMIT ?3)`

function openKeys(handle: Handle, { scope, operation = null }: SqliteRows, max: number): number {
  return Number(handle.rows(openSql, [storable(scope), operation, max])[0]?.open)
}

const bytesSql = `
  SELECT COUNT(*) AS measured, TOTAL(CASE WHEN ?2 IS NULL OR k.operation = ?2 THEN COALESCE(LENGTH(k.outcome), 0)
      + COALESCE((SELECT LENGTH(CAST(o.headers AS BLOB)) + COALESCE(LENGTH(o.body), 0) FROM latchkey_outcomes AS o WHERE o.id = k.id), 0)
      + COALESCE((SELECT LENGTH(CAST(i.input AS BLOB)) FROM latchkey_inputs AS i WHERE i.id = k.id), 0) END) AS bytes,
    (SELECT COUNT(*) FROM (SELECT 1 FROM latchkey_keys AS a WHERE a.scope = ?1 LIMIT ${countedMax})) AS rows
  FROM (${newest('k.id, k.operation, k.outcome')}) AS k`

function storedBytes(handle: Handle, { scope, operation = null }: SqliteRows): number {
  const [row] = handle.rows(bytesSql, [storable(scope), operation])
  const measured = Number(row?.measured)
  return measured === 0 ? 0 : Math.round((Number(row?.bytes) * Number(row?.rows)) / measured)
}

/** A parameter that is not given is null. */
type SqliteRows = Omit<ScopeRows, 'operation'> & { readonly operation?: string | null | undefined }
