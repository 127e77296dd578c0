/**
 * Statements that a session prepares once, where it is ours. They are sent by a query that writes its own messages to the connection of
 * `pg`: it asks for no description of the rows and makes no result objects, which cost more than a batch itself. All statements of one
 * message are one transaction. Behind PgBouncer in transaction mode each transaction may meet another session, which does not know the
 * name: there statements are sent without one.
 */
import { createHash } from 'node:crypto'
import type { PgClient, PgNamingClient, PgSubmittable, PgWire } from '../driver.ts'
import { arrayParameter, BinaryWriter, type Column, parameter, writeArray } from '../sql/columns.ts'
import { isUnknownStatement, storeError } from './errors.ts'
import { rowsOf } from './statement.ts'

/** A statement, prepared once in each session. */
export interface PreparedStatement {
  readonly name: string
  readonly text: string
}

/** A statement with its parameters. */
export interface Batch {
  readonly statement: PreparedStatement
  readonly parameterCount: number
  /** Writes each parameter behind its length. */
  write(writer: BinaryWriter): void
  /** The same for a driver that sends them. */
  values(): unknown[]
  /** The same for a driver that sends only text. */
  plain(): unknown[]
}

/**
 * Named by its text: two versions of this package that share a session must never run each other's statements. The label is for people
 * who look at a session's statements.
 */
export function prepared(label: string, text: string): PreparedStatement {
  return { name: `latchkey_${label}_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`, text }
}

/** A statement whose parameters are arrays, with an element for each item. */
export function preparedForMany<Item>(
  statement: PreparedStatement,
  columns: readonly Column<Item>[],
): (items: readonly Item[]) => Batch {
  return items => ({
    statement,
    parameterCount: columns.length,
    write(writer) {
      for (const column of columns) {
        const length = writer.later()
        writeArray(writer, column, items)
        writer.lengthAt(length, false)
      }
    },
    values: () => columns.map(column => arrayParameter(column, items)),
    plain: () => columns.map(column => items.map(column.of)),
  })
}

/** A statement whose parameters are the values of one item. */
export function preparedForOne<Item>(
  statement: PreparedStatement,
  columns: readonly Column<Item>[],
): (item: Item) => Batch {
  return item => ({
    statement,
    parameterCount: columns.length,
    write(writer) {
      for (const column of columns) column.write(writer, item)
    },
    values: () => columns.map(column => parameter(column, item)),
    plain: () => columns.map(column => column.of(item)),
  })
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
export function asNaming(client: PgClient): PgClient & PgNamingClient {
  return client as PgClient & PgNamingClient
}

/** The columns of one row, in the order of the statement: text, or what the driver has made of it. */
export type Fields = readonly unknown[]

export interface Answered {
  /** As the server names what it did: INSERT, COMMIT, … */
  readonly command: string
  readonly rows: readonly Fields[]
  /** How many rows the statement wrote or returned. */
  readonly count: number
}

/** Only `pg` in JavaScript lets a query write its own messages, and not while it sends queries ahead of their turn. */
export function takesBatches({ connection, pipeline }: PgClient): boolean {
  return (
    pipeline !== true &&
    typeof connection?.stream?.write === 'function' &&
    typeof connection.parsedStatements === 'object'
  )
}

export interface BatchTarget {
  readonly client: PgClient & PgNamingClient
  /** Not to be used again before the answer. */
  readonly writer: BinaryWriter
}

/** Resolves when all of it is committed, with an answer for each statement. */
export async function sendBatches(
  { client, writer }: BatchTarget,
  batches: readonly Batch[],
): Promise<readonly Answered[]> {
  for (const { statement } of batches) if (!isPrepared(client, statement)) await prepare(client, statement)
  writer.start()
  for (const batch of batches) bindAndExecute(writer, batch)
  writeSync(writer)
  return answered(client, { name: '', text: '', bytes: writer.written() })
}

export async function prepareAll(
  client: BatchTarget['client'],
  statements: readonly PreparedStatement[],
): Promise<void> {
  for (const statement of statements) if (!isPrepared(client, statement)) await prepare(client, statement)
}

export function arePrepared(client: PgClient, statements: readonly PreparedStatement[]): boolean {
  return statements.every(statement => isPrepared(client, statement))
}

function prepare(client: PgNamingClient, statement: PreparedStatement): Promise<unknown> {
  return answered(client, { ...statement, bytes: parse(statement) })
}

function isPrepared({ connection }: PgClient, { name, text }: PreparedStatement): boolean {
  return connection?.parsedStatements?.[name] === text
}

/** `name` and `text`: of the statement that it prepares, which `pg` takes note of. */
interface Message extends PreparedStatement {
  readonly bytes: Uint8Array
}

function answered(client: PgNamingClient, { name, text, bytes }: Message): Promise<readonly Answered[]> {
  const answers: Answered[] = []
  let rows: Fields[] = []
  const query: Settlers & PgSubmittable = {
    name,
    text,
    resolve: unset,
    reject: unset,
    submit: ({ stream }: PgWire) => void stream?.write(bytes),
    handleDataRow: ({ fields }) => void rows.push(fields),
    handleCommandComplete({ text: tag }) {
      // For example "INSERT 0 25": the count is the last word.
      answers.push({ command: tag, rows, count: Number(tag.slice(tag.lastIndexOf(' ') + 1)) })
      rows = []
    },
    // The transaction of the message is committed, and durable.
    handleReadyForQuery() {
      query.callback?.(null)
      query.resolve(answers)
    },
    // The answer to the Sync behind it comes later and is ignored.
    handleError(error) {
      query.callback?.(error)
      query.reject(error)
    },
  }
  const answer = new Promise<readonly Answered[]>((resolve, reject) => Object.assign(query, { resolve, reject }))
  client.query(query)
  return answer
}

interface Settlers {
  resolve(answers: readonly Answered[]): void
  reject(error: unknown): void
}

/** Until the promise of the query exists. */
function unset(): void {}

const codes = { parse: 0x50, bind: 0x42, execute: 0x45, sync: 0x53 }
const binary = 1

function parse({ name, text }: PreparedStatement): Buffer {
  const writer = new BinaryWriter(text.length + 256)
  writer.byte(codes.parse)
  const length = writer.later()
  writer.name(name)
  writer.name(text)
  writer.int16(0)
  writer.lengthAt(length, true)
  writeSync(writer)
  return writer.written()
}

function bindAndExecute(writer: BinaryWriter, batch: Batch): void {
  writer.byte(codes.bind)
  const length = writer.later()
  writer.name('')
  writer.name(batch.statement.name)
  // All parameters are binary. All results are text: `pg` reads every field as a string.
  writer.int16(1)
  writer.int16(binary)
  writer.int16(batch.parameterCount)
  batch.write(writer)
  writer.int16(0)
  writer.lengthAt(length, true)
  writer.byte(codes.execute)
  writer.int32(9)
  writer.name('')
  writer.int32(0)
}

function writeSync(writer: BinaryWriter): void {
  writer.byte(codes.sync)
  writer.int32(4)
}
