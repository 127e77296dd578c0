/** One message and its replies, as an object that `pg`'s client sends in its turn: no Query, no Result, no row description. */
import type { Connection } from 'pg'

export type Row = readonly (string | null)[]

/** What the statements of one message answered. */
export interface Replies {
  /** How many rows each statement touched. */
  readonly counts: readonly number[]
  readonly rows: readonly Row[]
}

/** The calls that `pg` makes on a query of its own. */
export interface RoundTrip {
  submit(connection: Connection): void
  handleDataRow(message: { readonly fields: Row }): void
  handleCommandComplete(message: { readonly text: string }): void
  handleReadyForQuery(): void
  handleError(error: Error): void
}

export function roundTrip(
  message: Buffer,
  answered: (result: Replies) => void,
  failed: (error: Error) => void,
): RoundTrip {
  const counts: number[] = []
  const rows: Row[] = []
  return {
    submit: ({ stream }) => void stream.write(message),
    handleDataRow: ({ fields }) => void rows.push(fields),
    // For example "INSERT 0 25": the count is the last word.
    handleCommandComplete: ({ text }) => void counts.push(Number(text.slice(text.lastIndexOf(' ') + 1))),
    // The implicit transaction of the message is committed, and durable.
    handleReadyForQuery: () => answered({ counts, rows }),
    handleError: failed,
  }
}
