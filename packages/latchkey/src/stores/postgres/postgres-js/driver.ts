/** The parts of postgres.js that are called. Typed by shape, so that the application brings its own version of it. */

/** What `postgres(…)` returns. Its types depend on the application's own: only what tells it apart is asked for. */
export interface PostgresJs {
  unsafe(text: string, ...rest: never[]): unknown
  begin(...work: never[]): Promise<unknown>
  readonly options: { readonly max: number }
}

/**
 * What a handler gets: the transaction of `sql.begin`, which also takes the place of `sql`, as Drizzle needs it. `begin` is overloaded,
 * and inference takes the last overload unless both are named.
 */
export type TransactionOf<Sql extends PostgresJs> = Sql extends {
  begin: { (work: (tx: infer Tx) => never): unknown; (options: string, work: (tx: infer Tx) => never): unknown }
}
  ? Sql & Tx
  : Sql

/** `sql` itself, as it is called here. */
export interface SqlRoot extends SqlScope {
  readonly options: {
    readonly max: number
    readonly transform?: {
      readonly column?: { readonly from?: ((name: string) => string) | undefined }
      readonly row?: { readonly from?: unknown }
    }
  }
  begin(options: string, work: (scope: SqlScope) => Promise<unknown>): Promise<unknown>
}

/** `sql`, or the one of a transaction: it makes queries, also as the tag of a template. */
export interface SqlScope {
  (strings: TemplateStringsArray, ...values: unknown[]): SqlQuery
  unsafe(text: string, values?: unknown[], options?: { readonly prepare?: boolean }): SqlQuery
  typed(value: unknown, type: number): unknown
}

/** It is sent when it is awaited. */
export interface SqlQuery extends Promise<SqlResult | readonly SqlResult[]> {
  /** Rows are lists of bytes, as the server sent them. */
  raw(): this
  /** Asks the server to cancel it, through a connection of its own. Null: it was asked before. */
  readonly canceller: ((query: SqlQuery) => Promise<unknown>) | null
  readonly strings: readonly string[]
  /** Puts it on its connection. */
  handler: (query: SqlQuery) => void
  resolve: (result: unknown) => void
  reject: (error: unknown) => void
}

export interface SqlResult extends ReadonlyArray<readonly (Uint8Array | null)[]> {
  readonly command: string | null
  readonly count: number | null
  readonly columns: readonly { readonly name: string; readonly type: number }[] | null
}

export function isPostgresJs(value: unknown): value is SqlScope {
  return typeof value === 'function' && isFunction(value, 'unsafe') && isFunction(value, 'typed')
}

/** A transaction has no `begin`: it has `savepoint`. */
export function isSqlRoot(sql: object): boolean {
  return isFunction(sql, 'begin') && isFunction(sql, 'end')
}

function isFunction(value: object, name: string): boolean {
  return typeof Reflect.get(value, name) === 'function'
}
