/** Databases whose bytes can be read and changed beside the store. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import Database from 'libsql'
import pg from 'pg'
import type { Store } from 'latchkey'
import { findPostgres } from '../../../../test/servers/postgres.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'

export interface RawDatabase {
  /** For `openPlace` in another process. */
  readonly place: string
  readonly store: Store
  /** All of it, as somebody gets it who has a backup. */
  dump(): Promise<string>
  /** A cell of the row of an identity. */
  cell(table: string, column: string, id: string): Promise<Buffer | string>
  write(table: string, column: string, change: { readonly id: string; readonly value: Buffer | string }): Promise<void>
  close(): Promise<void>
}

export async function rawPostgres(url: string): Promise<RawDatabase> {
  const pool = new pg.Pool({ connectionString: url, max: 8 })
  pool.on('error', () => {})
  await pool.query('drop schema if exists latchkey cascade')
  const store = postgresStore({ pool })
  await store.migrate()
  const found = findPostgres()
  if (found.kind === 'missing') throw new Error(found.why)
  const idOf = (table: string) => (table === 'evidence' ? 'key_id' : 'id')
  return {
    place: url,
    store,
    async dump() {
      const program = join(dirname(found.postgres), 'pg_dump')
      const { stdout } = await promisify(execFile)(program, [url], { maxBuffer: 1 << 28 })
      return stdout
    },
    async cell(table, column, id) {
      const { rows } = await pool.query(`select ${column} as value from latchkey.${table} where ${idOf(table)} = $1`, [
        id,
      ])
      return rows[0].value
    },
    async write(table, column, { id, value }) {
      await pool.query(`update latchkey.${table} set ${column} = $2 where ${idOf(table)} = $1`, [id, value])
    },
    close: () => pool.end(),
  }
}

export async function rawSqlite(): Promise<RawDatabase> {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-sealed-'))
  const path = join(directory, 'shop.db')
  const store = sqliteStore({ path, open: file => new Database(file), waitMs: 20_000, transactionMs: 20_000 })
  await store.migrate()
  const outside = new Database(path)
  outside.exec('pragma busy_timeout = 5000')
  return {
    place: path,
    store,
    async dump() {
      // What is deleted may stand in free pages until they are written again, and in the log until a checkpoint.
      outside.exec('vacuum')
      outside.exec('pragma wal_checkpoint(truncate)')
      return readdirSync(directory)
        .map(file => readFileSync(join(directory, file)).toString('latin1'))
        .join('\n')
    },
    async cell(table, column, id) {
      const row = outside.prepare(`select ${column} as value from latchkey_${table} where id = ?`).get(id)
      return (row as { value: Buffer | string }).value
    },
    async write(table, column, { id, value }) {
      outside.prepare(`update latchkey_${table} set ${column} = ? where id = ?`).run(value, id)
    },
    async close() {
      outside.close()
      await store.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
