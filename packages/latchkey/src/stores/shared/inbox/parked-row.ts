/** Rows of parked messages, as SQL drivers give them. */
import type {
  InboxAct,
  InboxRedrive,
  ListedInboxMessage,
  ParkedCause,
  ParkedInboxMessage,
  ParkedInboxPage,
} from '../../../ports/faculties/inbox.ts'
import { pageSize } from '../listing.ts'
import { headersFrom } from '../outbox/message.ts'
import type { RawNumber } from '../record-row.ts'

/** Counted no further: whether there are many is enough. */
export const parkedCountMax = 100_000

export interface ParkedHeadRow {
  readonly id: string
  readonly seq: RawNumber
  readonly consumer: string
  readonly operation: string
  readonly source: string
  readonly message_id: string | null
  readonly type: string | null
  readonly content_type: string | null
  readonly position: string | null
  readonly cause: string
  readonly key_id: string | null
  readonly attempts: RawNumber
  readonly times: RawNumber
  readonly first_parked_at_ms: RawNumber
  readonly parked_at_ms: RawNumber
  readonly redrive_as: string | null
  /** Null: it is not marked. */
  readonly due_in_ms: RawNumber | null
}

export interface ParkedRow extends ParkedHeadRow {
  readonly is_json: RawNumber | boolean
  readonly headers: string
  readonly payload: Uint8Array
}

export function listedOf(row: ParkedHeadRow): ListedInboxMessage {
  return {
    id: row.id,
    consumer: row.consumer,
    operation: row.operation,
    source: row.source,
    messageId: row.message_id ?? undefined,
    type: row.type ?? undefined,
    contentType: row.content_type ?? undefined,
    position: row.position ?? undefined,
    // Written by consumers of this release; one of a newer release may know more of them, and people can read it.
    cause: row.cause as ParkedCause,
    rowId: row.key_id ?? undefined,
    attempts: Number(row.attempts),
    times: Number(row.times),
    firstParkedAtMs: Math.floor(Number(row.first_parked_at_ms)),
    parkedAtMs: Math.floor(Number(row.parked_at_ms)),
    redrive: redriveOf(row),
  }
}

function redriveOf({ redrive_as, due_in_ms }: ParkedHeadRow): InboxRedrive | undefined {
  return due_in_ms === null ? undefined : { as: redrive_as ?? undefined, dueInMs: Math.ceil(Number(due_in_ms)) }
}

export function parkedOf(row: ParkedRow): ParkedInboxMessage {
  const { is_json, headers, payload } = row
  return { ...listedOf(row), form: Number(is_json) === 1 ? 'json' : 'bytes', headers: headersFrom(headers), payload }
}

/** `rows`: up to one more than the page has. */
export function parkedPage(rows: readonly ParkedHeadRow[], limit: number): ParkedInboxPage {
  const page = rows.slice(0, pageSize(limit))
  return { messages: page.map(listedOf), next: rows.length > page.length ? String(page.at(-1)?.seq) : undefined }
}

/** What an operator hands in may be anything; what is no number begins at the first page. */
export function seqAfter(after: string | undefined): string {
  return after !== undefined && /^\d{1,15}$/.test(after) ? after : '0'
}

/** What stays of a message that is gone. */
export function actDetail({ consumer, cause }: Pick<ListedInboxMessage, 'consumer' | 'cause'>, as?: string): string {
  return `${consumer} ${cause}${as === undefined ? '' : `, as ${as}`}`
}

export interface InboxActRow {
  readonly act: string
  readonly by: string
  readonly reason: string
  readonly detail: string
  readonly at_ms: RawNumber
}

export function actOf({ act, by, reason, detail, at_ms }: InboxActRow): InboxAct {
  return { act: act === 'discard' ? 'discard' : 'redrive', by, reason, detail, atMs: Math.floor(Number(at_ms)) }
}
