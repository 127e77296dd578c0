/** The few methods of `pg` that are called. Typed by shape, so that the application brings its own version of it. */

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
  /** With an error, the connection is thrown away instead of going back to the pool. */
  release(error?: Error | boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  /** Of an event emitter. */
  listeners?(event: 'error'): readonly unknown[]
}

export interface PgWire {
  on(event: 'commandComplete' | 'readyForQuery', listener: (message: PgMessage) => void): unknown
  removeListener(event: 'commandComplete' | 'readyForQuery', listener: (message: PgMessage) => void): unknown
}

export interface PgMessage {
  /** Of `commandComplete`: the command, as INSERT 0 1. */
  readonly text?: string
  /** Of `readyForQuery`: I (outside a transaction), T (in one), E (in one that has failed). */
  readonly status?: string
}

/** A client of `pg` itself: it also takes named statements. */
export interface PgNamingClient {
  query(named: { readonly name: string; readonly text: string; readonly values: unknown[] }): Promise<PgResult>
}

export interface PgPool extends PgQueryable {
  connect(): Promise<PgClient>
  /** Of a pool that emits events about its connections. */
  on?: {
    (event: 'acquire', listener: (client: PgClient) => void): unknown
    (event: 'error', listener: (error: Error) => void): unknown
  }
  readonly options?: { readonly max?: number | undefined }
  /** How many callers wait for a connection. */
  readonly waitingCount?: number
}

/** The client type of a pool. `connect` of `pg` is overloaded, and inference takes the last overload unless both are named. */
export type ClientOf<Pool> = Pool extends { connect: { (): Promise<infer Client>; (callback: never): void } }
  ? Client
  : Pool extends { connect(): Promise<infer Client> }
    ? Client
    : PgClient
