/** The few methods of `pg` that are called. Typed by shape, so that the application brings its own version of it. */

export interface PgResult {
  readonly command: string
  // What a driver hands back is checked where it is read, not believed here.
  readonly rows: readonly unknown[]
  /** How many rows a statement wrote. A query builder does not tell. */
  readonly rowCount?: number | null
}

export interface PgQueryable {
  query(text: string, values?: unknown[]): Promise<PgResult>
}

export interface PgClient extends PgQueryable {
  /** What the server, or whoever stands in between, said when the connection was made. Absent in `pg-native`. */
  readonly processID?: number | null
  /** What the server says, message by message. Only `pg` in JavaScript shows it. */
  readonly connection?: PgWire
  /** No query of this client is under way. As above. */
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

/** A client of `pg` itself: it takes named statements, too. */
export interface PgNamingClient {
  query(named: { readonly name: string; readonly text: string; readonly values: unknown[] }): Promise<PgResult>
}

export interface PgPool extends PgQueryable {
  connect(): Promise<PgClient>
  /** Of a pool that emits what happens to its connections. */
  on?: {
    (event: 'acquire', listener: (client: PgClient) => void): unknown
    (event: 'error', listener: (error: Error) => void): unknown
  }
  readonly options?: { readonly max?: number | undefined }
  /** How many wait for a connection. */
  readonly waitingCount?: number
}

/** The client type of a pool. `connect` of `pg` is overloaded, and inference looks at the last overload unless told of both. */
export type ClientOf<Pool> = Pool extends { connect: { (): Promise<infer Client>; (callback: never): void } }
  ? Client
  : Pool extends { connect(): Promise<infer Client> }
    ? Client
    : PgClient
