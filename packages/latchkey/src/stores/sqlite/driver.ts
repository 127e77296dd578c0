/**
 * The few methods used of a synchronous SQLite driver: `DatabaseSync` of node:sqlite and `Database` of libsql (or
 * better-sqlite3) have this shape, and are handed in, never imported.
 */

export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
  close(): unknown
  /** libsql, better-sqlite3. */
  readonly inTransaction?: boolean
  /** node:sqlite from Node 22.16. */
  readonly isTransaction?: boolean
}

export interface SqliteStatement {
  // `never`: each driver types its parameters differently, and a function that takes anything takes `never`.
  all(...parameters: never[]): unknown[]
  run(...parameters: never[]): { readonly changes: number | bigint }
}

/** What can be bound and what comes back. A blob comes back as a Uint8Array from every driver. */
export type SqliteValue = null | number | bigint | string | Uint8Array

/** A boolean is bound as 1 or 0. */
export type SqliteParameter = SqliteValue | boolean

export type SqliteRow = Readonly<Record<string, SqliteValue>>
