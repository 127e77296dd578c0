/**
 * Prepared statements on their way: a query that writes its own messages to the connection of `pg`. It asks for no description of the
 * rows and makes no result objects, which cost more than the batch itself. All statements of one message are one transaction.
 */
import type { PgClient, PgNamingClient, PgSubmittable, PgWire } from '../driver.ts'
import { BinaryWriter } from '../sql/binary-writer.ts'

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
export function takesFlights({ connection, pipeline }: PgClient): boolean {
  return (
    pipeline !== true &&
    typeof connection?.stream?.write === 'function' &&
    typeof connection.parsedStatements === 'object'
  )
}

export interface FlightPlan {
  readonly client: PgClient & PgNamingClient
  /** Not to be used again before the answer. */
  readonly writer: BinaryWriter
}

/** Resolves when all of it is committed, with an answer for each statement. */
export async function fly({ client, writer }: FlightPlan, batches: readonly Batch[]): Promise<readonly Answered[]> {
  for (const { statement } of batches) if (!isPrepared(client, statement)) await prepare(client, statement)
  writer.start()
  for (const batch of batches) bindAndExecute(writer, batch)
  writeSync(writer)
  return answered(client, { name: '', text: '', bytes: writer.written() })
}

export async function prepareAll(
  client: FlightPlan['client'],
  statements: readonly PreparedStatement[],
): Promise<void> {
  for (const statement of statements) if (!isPrepared(client, statement)) await prepare(client, statement)
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
  const flight: Landing & PgSubmittable = {
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
      flight.callback?.(null)
      flight.resolve(answers)
    },
    // The answer to the Sync behind it comes later, and is for nobody.
    handleError(error) {
      flight.callback?.(error)
      flight.reject(error)
    },
  }
  const answer = new Promise<readonly Answered[]>((resolve, reject) => Object.assign(flight, { resolve, reject }))
  client.query(flight)
  return answer
}

interface Landing {
  resolve(answers: readonly Answered[]): void
  reject(error: unknown): void
}

/** Until the promise of the flight is there. */
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
