/**
 * The statements that most requests send: on a connection of the pool, prepared where its session is ours, and bounded in time. Behind
 * PgBouncer in transaction mode each transaction may meet another session, which does not know the name: there they are sent without one.
 */
import { createHash } from 'node:crypto'
import { systemClock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import type { PgClient, PgNamingClient, PgPool, PgResult } from '../driver.ts'
import { asError, isDefiniteRefusal, isUnknownStatement, storeError } from './errors.ts'
import { ignoreErrors } from './ignore-errors.ts'
import { rowsOf } from './statement.ts'

export interface PreparedStatement {
  readonly name: string
  readonly text: string
}

/** Named by its text: two versions of this package that share a session must never run each other's statements. */
export function prepared(text: string): PreparedStatement {
  return { name: `latchkey_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`, text }
}

export interface Sessions {
  /** Whether statements on this connection may be named. Undefined: the server was not asked yet. */
  isOurs(client: PgClient): boolean | undefined
  findOut(client: PgClient): Promise<boolean>
  /** To be called with every error of a statement that may have had a name. */
  failed(error: unknown): void
}

export function sessions(): Sessions {
  const ours = new WeakMap<PgClient, boolean>()
  let isPossible = true
  return {
    isOurs: client => isPossible && ours.get(client),
    async findOut(client) {
      const found = await isDirect(client)
      ours.set(client, found)
      return found
    },
    failed(error) {
      // The sessions that the pool hands out again are emptied in between. From the next statement on, names are not used.
      if (isUnknownStatement(error)) isPossible = false
    },
  }
}

/** A client behind a pooler was given a process id that is not that of the server process at the other end. */
async function isDirect(client: PgClient): Promise<boolean> {
  if (typeof client.processID !== 'number') return false
  const { rows } = await client.query('select pg_catalog.pg_backend_pid() as pid')
  // The statement above has this one column.
  return Number((rows[0] as { readonly pid: unknown } | undefined)?.pid) === client.processID
}

export type RunPrepared = <Row>(statement: PreparedStatement, values: unknown[]) => Promise<readonly Row[]>

/** On a connection that is in a transaction of ours. */
export function preparedIn(client: PgClient, known: Sessions, schema: string): RunPrepared {
  return async <Row>({ name, text }: PreparedStatement, values: unknown[]) => {
    try {
      const isOurs = known.isOurs(client) ?? (await known.findOut(client))
      return rowsOf<Row>(await (isOurs ? asNaming(client).query({ name, text, values }) : client.query(text, values)))
    } catch (error) {
      known.failed(error)
      throw storeError(error, schema)
    }
  }
}

/** Only `pg` itself shows the process id by which a session is found to be ours, and it takes names. */
function asNaming(client: PgClient): PgNamingClient {
  return client as PgClient & PgNamingClient
}

/** One statement, sent once and committed by itself. */
export type Send = (statement: PreparedStatement, values: unknown[]) => Promise<PgResult>

export interface SendOptions {
  readonly pool: PgPool
  readonly schema: string
  readonly sessions: Sessions
  readonly limitMs: number
}

/** One statement on its way. */
interface Attempt {
  /** Checked out for it, and not given back yet. */
  client: PgClient | undefined
  /** It was given up. */
  late: LatchkeyError | undefined
}

/**
 * A statement that is not answered within `limitMs` is given up together with its connection: whatever still runs on it would delay the
 * next statement.
 */
export function boundedSend({ pool, schema, sessions: known, limitMs }: SendOptions): Send {
  async function run(attempt: Attempt, { name, text }: PreparedStatement, values: unknown[]): Promise<PgResult> {
    let client: PgClient
    try {
      client = await pool.connect()
    } catch (error) {
      throw notConnected(error, schema)
    }
    if (attempt.late !== undefined) {
      client.release()
      throw attempt.late
    }
    attempt.client = client
    const stopIgnoring = ignoreErrors(client)
    try {
      const isOurs = known.isOurs(client) ?? (await known.findOut(client))
      const result = await (isOurs ? asNaming(client).query({ name, text, values }) : client.query(text, values))
      giveBack(attempt)
      return result
    } catch (error) {
      known.failed(error)
      giveBack(attempt, error)
      throw storeError(error, schema)
    } finally {
      stopIgnoring()
    }
  }

  return (statement, values) => {
    const attempt: Attempt = { client: undefined, late: undefined }
    const answer = run(attempt, statement, values)
    return new Promise((resolve, reject) => {
      const cancel = systemClock.after(limitMs, () => reject(giveUp(attempt, limitMs)))
      answer.then(
        result => {
          cancel()
          resolve(result)
        },
        (error: unknown) => {
          cancel()
          reject(error)
        },
      )
    })
  }
}

/** A statement that still waits for its connection was not sent. */
function giveUp(attempt: Attempt, limitMs: number): LatchkeyError {
  const sent = attempt.client === undefined ? false : undefined
  attempt.late = new LatchkeyError('store-unavailable', `PostgreSQL did not answer within ${limitMs} ms`, { sent })
  giveBack(attempt, attempt.late)
  return attempt.late
}

/** Once. After an error that leaves open what the connection is doing, the pool closes it. */
function giveBack(attempt: Attempt, error?: unknown): void {
  const { client } = attempt
  attempt.client = undefined
  if (error === undefined || isDefiniteRefusal(error)) client?.release()
  else client?.release(asError(error))
}

/** The statement waited for a connection, and none came: nothing of it was sent. */
function notConnected(error: unknown, schema: string): LatchkeyError {
  const { code, message, cause } = storeError(error, schema)
  return new LatchkeyError(code, message, { cause, sent: false })
}
