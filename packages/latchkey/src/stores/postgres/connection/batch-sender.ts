/**
 * A way for batches to the server. While they follow one another they stay on one connection: to check one out and give it back takes
 * longer than to send a batch. What is sent together is sent once, is one transaction, and is bounded in time.
 */
import { systemClock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import { connectionWait, type Observed } from '../../shared/observed.ts'
import { adapted, type PgClient, type PgPool, type PgResult } from '../driver.ts'
import { BinaryWriter } from '../sql/columns.ts'
import { asError, isDefiniteRefusal, storeError } from './errors.ts'
import { type Answered, asNaming, type Batch, sendBatches, type Sessions, takesBatches } from './prepared.ts'
import { ignoreErrors } from './ignore-errors.ts'
import { type PoolShare, shareOf } from './pool-share.ts'
import { rowsOf } from './statement.ts'

/** Resolves with what became of each batch. */
export type Send = (batches: readonly Batch[]) => Promise<readonly Sent[]>

export type Sent = { readonly kind: 'answered'; readonly answer: Answered } | SendFailure

export interface SendFailure {
  readonly kind: 'failed'
  readonly error: LatchkeyError
}

export interface SenderOptions {
  readonly pool: PgPool
  readonly schema: string
  readonly sessions: Sessions
  /** A batch that is not answered by then is given up together with its connection: what still runs there would delay the next one. */
  readonly limitMs: number
  readonly observed?: Observed
}

/** Others that come to want a connection meanwhile have to wait for so long, and so has the end of the pool. */
const idleMs = 10
/** Then the connection goes back in between, so that the pool's own limits on its age and its uses hold. */
const keptMsMax = 10_000

/** A connection that is checked out. */
interface Connection {
  readonly client: PgClient
  readonly writer: BinaryWriter
  readonly stopListening: () => void
  readonly sinceMs: number
}

interface Sender {
  readonly options: SenderOptions
  readonly share: PoolShare
  /** Kept from the last batch, and free for the next. */
  kept: Connection | undefined
  /** The connection of the sender is out: kept, or under way with a batch. */
  hasOwn: boolean
  cancelIdle: () => void
}

export function openSender(options: SenderOptions): Send {
  const sender: Sender = { options, share: shareOf(options.pool), kept: undefined, hasOwn: false, cancelIdle: () => {} }
  return batches => {
    const attempt: Attempt = { connection: undefined, isOwn: false, late: undefined, end: unset }
    const sent = new Promise<readonly Sent[]>(resolve => (attempt.end = resolve))
    const fail = (error: unknown) => {
      const failure: SendFailure = { kind: 'failed', error: storeError(error, options.schema) }
      attempt.end(batches.map(() => failure))
    }
    const cancel = systemClock.after(options.limitMs, () => fail(giveUp(sender, attempt)))
    run(sender, attempt, batches).then(attempt.end, fail).finally(cancel)
    return sent
  }
}

/** Until the promise of an attempt is there. */
function unset(): void {}

/** One batch on its way. */
interface Attempt {
  connection: Connection | undefined
  /** Its connection is the sender's own, which the next batch uses as well. */
  isOwn: boolean
  /** It was given up. */
  late: LatchkeyError | undefined
  /** Once: what comes later is ignored. */
  end: (sent: readonly Sent[]) => void
}

async function run(sender: Sender, attempt: Attempt, batches: readonly Batch[]): Promise<readonly Sent[]> {
  const { sessions, schema } = sender.options
  const connection = takeKept(sender, attempt) ?? (await checkOut(sender, attempt))
  const { client } = connection
  try {
    const isOurs = sessions.isOurs(client) ?? (await sessions.findOut(client))
    const sent =
      isOurs && takesBatches(client)
        ? (await sendBatches({ client: asNaming(client), writer: connection.writer }, batches)).map(asSent)
        : await queryEach({ client, isOurs, schema }, batches)
    giveBack(sender, attempt)
    return sent
  } catch (error) {
    sessions.failed(error)
    giveBack(sender, attempt, error)
    throw error
  }
}

function asSent(answer: Answered): Sent {
  return { kind: 'answered', answer }
}

interface DriverPlan {
  readonly client: PgClient
  readonly isOurs: boolean
  readonly schema: string
}

/** Through the driver, for sessions and clients that take no messages of ours: one after the other, each committed by itself. */
async function queryEach({ client, isOurs, schema }: DriverPlan, batches: readonly Batch[]): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  for (const batch of batches) {
    try {
      sent.push(asSent(answerOf(await query(client, isOurs, batch))))
    } catch (error) {
      // After any other error it is not known what the connection is doing.
      if (batches.length === 1 || !isDefiniteRefusal(error)) throw error
      sent.push({ kind: 'failed', error: storeError(error, schema) })
    }
  }
  return sent
}

function query(client: PgClient, isOurs: boolean, { statement, values, plain }: Batch): Promise<PgResult> {
  const { name, text } = statement
  if (client[adapted] !== undefined) return client.query(text, plain())
  return isOurs ? asNaming(client).query({ name, text, values: values() }) : client.query(text, values())
}

function answerOf(result: PgResult): Answered {
  const rows = rowsOf<object>(result).map(row => Object.values(row))
  return { command: result.command, rows, count: result.rowCount ?? rows.length }
}

function takeKept(sender: Sender, attempt: Attempt): Connection | undefined {
  const { kept } = sender
  if (kept === undefined) return undefined
  sender.cancelIdle()
  sender.kept = undefined
  attempt.isOwn = true
  attempt.connection = kept
  return kept
}

async function checkOut(sender: Sender, attempt: Attempt): Promise<Connection> {
  const { pool, schema, observed } = sender.options
  const connected = observed && connectionWait(observed)
  let client: PgClient
  try {
    client = await pool.connect()
    connected?.()
  } catch (error) {
    throw notConnected(error, schema)
  }
  if (attempt.late !== undefined) {
    client.release()
    throw attempt.late
  }
  // One that breaks while the sender keeps it would fail the next batch.
  const onError = (error: unknown) => void (sender.kept?.client === client && letGo(sender, sender.kept, error))
  const stopIgnoring = ignoreErrors(client)
  client.on('error', onError)
  const connection: Connection = {
    client,
    writer: new BinaryWriter(),
    stopListening() {
      client.removeListener('error', onError)
      stopIgnoring()
    },
    sinceMs: systemClock.monotonicMs(),
  }
  attempt.connection = connection
  attempt.isOwn = !sender.hasOwn && sender.share.tryKeep()
  if (attempt.isOwn) sender.hasOwn = true
  return connection
}

/** Once. To the sender, or to the pool: after an error that leaves open what the connection is doing, the pool closes it. */
function giveBack(sender: Sender, attempt: Attempt, error?: unknown): void {
  const { connection, isOwn } = attempt
  attempt.connection = undefined
  if (connection === undefined) return
  const isSound = error === undefined || isDefiniteRefusal(error)
  if (!isOwn) release(connection, isSound ? undefined : error)
  else if (isSound && mayKeep(sender, connection)) keep(sender, connection)
  else letGo(sender, connection, isSound ? undefined : error)
}

function mayKeep({ options }: Sender, { sinceMs }: Connection): boolean {
  return hasSpare(options.pool) && systemClock.monotonicMs() - sinceMs < keptMsMax
}

/** No caller waits for a connection, and the next one need not. */
function hasSpare({ waitingCount, idleCount, totalCount, options }: PgPool): boolean {
  if (waitingCount !== 0) return false
  return (idleCount ?? 0) > 0 || (totalCount ?? 0) < (options?.max ?? Infinity)
}

function keep(sender: Sender, connection: Connection): void {
  sender.kept = connection
  sender.cancelIdle = systemClock.after(idleMs, () => letGo(sender, connection, undefined))
}

function letGo(sender: Sender, connection: Connection, error: unknown): void {
  sender.cancelIdle()
  sender.kept = undefined
  sender.hasOwn = false
  sender.share.unkeep()
  release(connection, error)
}

function release({ client, stopListening }: Connection, error: unknown): void {
  stopListening()
  client.release(error === undefined ? undefined : asError(error))
}

/** A batch that still waits for its connection was not sent. */
function giveUp(sender: Sender, attempt: Attempt): LatchkeyError {
  const sent = attempt.connection === undefined ? false : undefined
  const { limitMs } = sender.options
  attempt.late = new LatchkeyError('store-unavailable', `PostgreSQL did not answer within ${limitMs} ms`, { sent })
  giveBack(sender, attempt, attempt.late)
  return attempt.late
}

/** The batch waited for a connection, and none came: nothing of it was sent. */
function notConnected(error: unknown, schema: string): LatchkeyError {
  const { code, message, cause } = storeError(error, schema)
  return new LatchkeyError(code, message, { cause, sent: false })
}
