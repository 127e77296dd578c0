/**
 * Statements through postgres.js. The application may have changed how its types are written and read, and how columns are named, and so
 * does Drizzle. So all parameters are sent as text whose type the server finds out, and all fields are read from their bytes.
 */
import type { PgResult } from '../driver.ts'
import type { SqlQuery, SqlResult, SqlScope } from './driver.ts'

/** In `pg_type`. The server takes the type from the statement, and postgres.js knows no serializer for it. */
const unknownType = 705

export function queryOf(scope: SqlScope, text: string, values: readonly unknown[] = []): SqlQuery {
  if (values.length === 0) return scope.unsafe(text).raw()
  const texts = values.map(value => scope.typed(textOf(value), unknownType))
  // Prepared once in each session, unless the application has switched that off, for a pooler in between.
  return scope.unsafe(text, texts, { prepare: true }).raw()
}

export async function answerTo(query: SqlQuery): Promise<PgResult> {
  const result = await query
  // A message of several statements has several results, as with `pg`.
  return isOne(result) ? resultOf(result) : (result.map(resultOf) as unknown as PgResult)
}

function isOne(result: SqlResult | readonly SqlResult[]): result is SqlResult {
  return 'command' in result
}

function resultOf(result: SqlResult): PgResult {
  const columns = result.columns ?? []
  const names = columns.map(({ name }) => asWritten(name))
  const rows = Array.from(result, fields => {
    const row: Record<string, unknown> = {}
    for (const [at, name] of names.entries()) row[name] = valueOf(fields[at] ?? null, columns[at]?.type)
    return row
  })
  return { command: result.command ?? '', rows, rowCount: result.count }
}

/** Our columns are in snake case. The application may have asked for them in another one. */
export function asWritten(name: string): string {
  return name
    .replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
    .replaceAll('-', '_')
    .replace(/^_/, '')
}

/** As PostgreSQL reads it, whatever type the statement gives it. */
export function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null
  if (value instanceof Uint8Array) return `\\x${bytesOf(value).toString('hex')}`
  if (Array.isArray(value)) return `{${value.map(elementOf).join()}}`
  if (typeof value === 'object') return JSON.stringify(value)
  // A text, a number or a boolean.
  return `${value as string | number | bigint | boolean}`
}

function elementOf(value: unknown): string {
  const text = textOf(value)
  return text === null ? 'NULL' : `"${text.replace(/["\\]/g, '\\$&')}"`
}

function bytesOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** As `pg` gives it. Numbers of 64 bits stay text, and so does what our statements do not return. */
export function valueOf(field: Uint8Array | null, type: number | undefined): unknown {
  if (field === null) return null
  const text = bytesOf(field).toString()
  switch (type) {
    case 16:
      return text === 't'
    case 17:
      return byteaOf(text)
    case 21:
    case 23:
    case 26:
    case 700:
    case 701:
      return Number(text)
    case 114:
    case 3802:
      return JSON.parse(text)
    default:
      return text
  }
}

function byteaOf(text: string): Buffer {
  if (text.startsWith('\\x')) return Buffer.from(text.slice(2), 'hex')
  // As a session with bytea_output = escape has it.
  const plain = text.replace(/\\(\\|[0-7]{3})/g, (_, code: string) =>
    code === '\\' ? code : String.fromCharCode(Number.parseInt(code, 8)),
  )
  return Buffer.from(plain, 'latin1')
}
