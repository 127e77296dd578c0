/**
 * The one connection of the floor. What gathers while a message is under way goes into the next: completions of some
 * requests and claims of others, in one transaction with one durable commit. A request waits for two of them.
 */
import type pg from 'pg'
import { type RoundTrip, roundTrip, type Replies, type Row } from './round-trip.ts'
import { type MessageWriter, messageWriter } from './message.ts'
import { claimColumns, completionColumns, type Entry, prepare } from './statements.ts'

/** What became of an entry; each is called after the commit. */
export interface BatchEvents<E extends Entry> {
  won(entry: E): void
  /** Another request has the key. Its answer is undefined while it is in progress. */
  taken(entry: E, by: { readonly sameBody: boolean; readonly answer: string | undefined }): void
  completed(entry: E): void
  failed(entry: E, error: Error): void
}

export interface BatchConnection<E extends Entry> {
  claim(entry: E): void
  complete(entry: E): void
}

/** More than the load generator has connections; with answers of up to a kilobyte they fit into a message. */
const entriesMax = 500
const messageBytesMax = 1 << 20

interface Batch<E> {
  readonly claims: readonly E[]
  readonly completions: readonly E[]
}

export async function openBatchConnection<E extends Entry>(
  client: pg.PoolClient,
  events: BatchEvents<E>,
): Promise<BatchConnection<E>> {
  await prepare(client)
  const writer = messageWriter(messageBytesMax)
  const claims: E[] = []
  const completions: E[] = []
  let planned = false
  let busy = false
  /** Whether the last batch met keys that were there: the next then reads before it inserts, in the same message. */
  let readFirst = false

  const plan = () => {
    if (planned || busy) return
    planned = true
    setImmediate(send)
  }
  const send = () => {
    planned = false
    // In the order of their ids, so that the batches of two processes cannot deadlock.
    const batch = {
      claims: claims.splice(0, entriesMax).sort((a, b) => a.id.compare(b.id)),
      completions: completions.splice(0, entriesMax),
    }
    writeBatch(writer, batch, readFirst)
    sendBatch(batch, answered => settle(batch, answered))
  }
  const sendBatch = ({ claims, completions }: Batch<E>, answered: (result: Replies) => void) => {
    busy = true
    const failed = (error: Error) => {
      free()
      for (const entry of [...claims, ...completions]) events.failed(entry, error)
    }
    client.query<RoundTrip>(roundTrip(writer.finish(), answered, failed))
  }
  const free = () => {
    busy = false
    if (claims.length + completions.length > 0) plan()
  }
  const settle = ({ claims, completions }: Batch<E>, { counts, rows }: Replies) => {
    const missing = claims.length - rows.length
    if (claims.length > 0 && counts.at(-1) !== missing) readBack(claims)
    else decide(claims, rows)
    acknowledge(completions, counts[0] ?? 0, events)
  }
  /** Fewer rows were inserted than were missing: the claim ids tell which are ours. */
  const readBack = (claims: readonly E[]) => {
    writer.add('floor_read', claimColumns, claims)
    sendBatch({ claims, completions: [] }, ({ rows }) => decide(claims, rows))
  }
  const decide = (claims: readonly E[], rows: readonly Row[]) => {
    if (claims.length > 0) readFirst = rows.length > 0
    free()
    judge(claims, rows, events)
  }
  return {
    claim(entry) {
      claims.push(entry)
      plan()
    },
    complete(entry) {
      completions.push(entry)
      plan()
    },
  }
}

function writeBatch<E extends Entry>(
  writer: MessageWriter,
  { claims, completions }: Batch<E>,
  readFirst: boolean,
): void {
  if (completions.length > 0) writer.add('floor_complete', completionColumns, completions)
  if (claims.length === 0) return
  if (readFirst) writer.add('floor_read', claimColumns, claims)
  writer.add('floor_claim', claimColumns, claims)
}

/** A claim without a row was inserted after the reading. */
function judge<E extends Entry>(claims: readonly E[], rows: readonly Row[], events: BatchEvents<E>): void {
  const found = new Map(rows.map(row => [Number(row[0]), row]))
  claims.forEach((entry, place) => {
    const row = found.get(place)
    if (row === undefined || row[1] === 't') events.won(entry)
    else events.taken(entry, { sameBody: row[2] === 't', answer: row[3] ?? undefined })
  })
}

/** Which one of a batch was lost is not known, so none of it is acknowledged. */
function acknowledge<E extends Entry>(completions: readonly E[], written: number, events: BatchEvents<E>): void {
  for (const entry of completions) {
    if (written === completions.length) events.completed(entry)
    else events.failed(entry, new Error('a claim of this batch was lost'))
  }
}
