/** The few methods of `pg` that are called. Typed by shape, so that the application brings its own version of it. */
import type { Scope } from './postgres-js/scope.ts'

/** Where the pool and the clients that stand for postgres.js have what `pg` has not. No pool of an application has it by chance. */
export const adapted: unique symbol = Symbol('latchkey: adapted driver')

export interface PgResult {
  readonly command: string
  // Checked where they are read.
  readonly rows: readonly unknown[]
  /** How many rows a statement wrote. Query builders do not report it. */
  readonly rowCount?: number | null
}

export interface PgQueryable {
  query(text: string, values?: unknown[]): Promise<PgResult>
}

export interface PgClient extends PgQueryable {
  /** What the server, or a pooler in between, reported when the connection was made. Absent in `pg-native`. */
  readonly processID?: number | null
  /** The server's messages. Only `pg` in JavaScript shows them. */
  readonly connection?: PgWire
  /** No query of this client is running. As above. */
  readonly readyForQuery?: boolean
  /** It sends queries before those ahead of them are answered, and takes none but its own. As above. */
  readonly pipeline?: boolean
  /** It takes no parameters in the binary format. `scope`: its transaction, from which a handler gets a `sql`. */
  readonly [adapted]?: { readonly scope?: Scope }
  /** With an error, the connection is thrown away instead of going back to the pool. */
  release(error?: Error | boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  /** Of an event emitter. */
  listeners?(event: 'error'): readonly unknown[]
}

export interface PgWire {
  /** The socket. */
  readonly stream?: { write(bytes: Uint8Array): unknown; cork?(): void; uncork?(): void }
  /** The texts of the statements that this session has prepared, by their names. `pg` keeps it up to date. */
  readonly parsedStatements?: Readonly<Record<string, string>>
  on(event: 'commandComplete' | 'readyForQuery', listener: (message: PgMessage) => void): unknown
  removeListener(event: 'commandComplete' | 'readyForQuery', listener: (message: PgMessage) => void): unknown
}

export interface PgMessage {
  /** Of `commandComplete`: the command, as INSERT 0 1. */
  readonly text?: string
  /** Of `readyForQuery`: I (outside a transaction), T (in one), E (in one that has failed). */
  readonly status?: string
}

/** A client of `pg` itself: it also takes named statements, and queries that write their own messages. */
export interface PgNamingClient {
  query(named: { readonly name: string; readonly text: string; readonly values: unknown[] }): Promise<PgResult>
  query(query: PgSubmittable): unknown
}

/** The calls that `pg` makes on a query. It hands each of the server's messages to the query whose turn it is. */
export interface PgSubmittable {
  readonly name: string
  readonly text: string
  /** Set by `pg` where the pool has a `query_timeout`: to be called at the end, which stops its timer. */
  callback?: (error: unknown) => void
  submit(connection: PgWire): void
  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void
  handleCommandComplete(message: { readonly text: string }): void
  handleReadyForQuery(): void
  handleError(error: unknown): void
}

export interface PgPool extends PgQueryable {
  connect(): Promise<PgClient>
  /** Begins a transaction by itself; COMMIT or ROLLBACK ends it. `level`: the options of BEGIN. */
  readonly [adapted]?: { begin(level: string): Promise<PgClient> }
  /** Of a pool that emits events about its connections. */
  on?: {
    (event: 'acquire', listener: (client: PgClient) => void): unknown
    (event: 'error', listener: (error: Error) => void): unknown
  }
  readonly options?: { readonly max?: number | undefined }
  /** How many callers wait for a connection. */
  readonly waitingCount?: number
  /** How many connections there are, and how many of them are not in use. */
  readonly totalCount?: number
  readonly idleCount?: number
}

/** The client type of a pool. `connect` of `pg` is overloaded, and inference takes the last overload unless both are named. */
export type ClientOf<Pool> = Pool extends { connect: { (): Promise<infer Client>; (callback: never): void } }
  ? Client
  : Pool extends { connect(): Promise<infer Client> }
    ? Client
    : PgClient
