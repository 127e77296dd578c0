/** Rows of the tables that hold values of the application's, as SQL drivers give them, to values and back. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { Outcome } from '../../../ports/outcome.ts'
import type {
  StoredMessage,
  StoredOutcome,
  StoredParked,
  StoredText,
  StoredValue,
} from '../../../ports/faculties/values.ts'
import { headersFrom } from '../outbox/message.ts'
import { headersToText } from '../outcome-codec.ts'
import { packOutcome, unpackOutcome } from '../packed-outcome.ts'
import { outcomeOf, type RawNumber } from '../record-row.ts'

/**
 * In the order in which they are paged. Evidence comes first: when it is applied, its bytes are copied to an outcome or a step, which must
 * not have been passed by then.
 */
export const valueTableNames = [
  'evidence',
  'keys',
  'outcomes',
  'inputs',
  'steps',
  'outbox',
  'outbox_delivered',
  'received',
  'inbox_parked',
  'key_references',
] as const
export type ValueTableName = (typeof valueTableNames)[number]

/** What the page of a table selects. `number`: fence, position, or number of a piece of evidence or a message. */
export interface ValueRow {
  readonly id: string
  readonly number: RawNumber
  readonly packed?: Uint8Array | null
  readonly text?: string | null
  readonly status?: RawNumber | null
  readonly version?: RawNumber | null
  readonly headers?: string | null
  readonly body?: Uint8Array | null
  readonly topic?: string
  readonly aggregate?: string | null
  readonly dedup_id?: string
  readonly source?: string
  readonly ref?: string | null
}

/** Without the name of its place. */
type Unplaced = WithoutPlace<StoredValue>
type WithoutPlace<Value> = Value extends StoredValue ? Omit<Value, 'at'> : never

const valuesIn: Readonly<Record<ValueTableName, (row: ValueRow) => readonly Unplaced[]>> = {
  keys: row => [...packed(row), ...text(row, 'description')],
  outcomes: whole,
  inputs: row => text(row, 'input'),
  steps: row => text(row, 'step'),
  evidence: row => [...whole(row), ...text(row, 'step'), ...ref(row)],
  outbox: message,
  outbox_delivered: row => text({ ...row, id: String(row.number) }, 'downstream-id'),
  received: ref,
  inbox_parked: parked,
  key_references: reference,
}

export function valuesOf(table: ValueTableName, row: ValueRow): readonly StoredValue[] {
  const at = `${table}/${row.id}/${row.number}`
  // `at` is all that was missing.
  return valuesIn[table](row).map(value => ({ ...value, at }) as StoredValue)
}

function packed({ id, number, packed: raw }: ValueRow): readonly Unplaced[] {
  if (raw === null || raw === undefined) return []
  const outcome = readable(() => unpackOutcome(raw, Number(number)))
  return outcome === undefined ? [] : [{ kind: 'outcome', id, outcome, raw }]
}

function whole({ id, number, status, version, headers, body }: ValueRow): readonly Unplaced[] {
  if (status === null || status === undefined) return []
  const row = { fence: number, outcome_status: status, outcome_version: version ?? 1 }
  const outcome = readable(() => outcomeOf({ ...row, outcome_headers: headers ?? '[]', outcome_body: body ?? null }))
  return outcome === undefined ? [] : [{ kind: 'outcome', id, outcome }]
}

/** What cannot be read is not ours to rewrite. */
function readable(read: () => Outcome | undefined): Outcome | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

function text({ id, text: found }: ValueRow, column: StoredText['column']): readonly Unplaced[] {
  return found === null || found === undefined ? [] : [{ kind: 'text', column, id, text: found }]
}

function message({ topic = '', aggregate, dedup_id: dedupId = '', headers, body }: ValueRow): readonly Unplaced[] {
  const payload = body ?? new Uint8Array()
  const found = { topic, aggregate: aggregate ?? undefined, dedupId, headers: headersFrom(headers), payload }
  return [{ kind: 'message', message: found }]
}

function parked({ id, headers, body }: ValueRow): readonly Unplaced[] {
  return [{ kind: 'parked', id, headers: headersFrom(headers), payload: body ?? new Uint8Array() }]
}

function ref({ source = '', ref: name }: ValueRow): readonly Unplaced[] {
  return name === null || name === undefined ? [] : [{ kind: 'ref', source, ref: name }]
}

function reference({ id, ref: index, text: sealed }: ValueRow): readonly Unplaced[] {
  return [{ kind: 'reference', id, index: index ?? '', sealed: sealed ?? undefined }]
}

/** A signed message is named by two texts, which may hold anything. */
export function receivedId(source: string, name: string): string {
  return Buffer.from(JSON.stringify([source, name])).toString('base64url')
}

/** Which statement replaces a value, and its parameters: the two parts of the key, what was there, what comes. */
export interface Replacement {
  readonly name: string
  readonly id: string
  readonly number: number
  readonly values: readonly (string | Uint8Array | null)[]
}

export function replacementOf(before: StoredValue, after: StoredValue): Replacement {
  const [table = '', id = '', number = '0'] = before.at.split('/')
  const name = `${table}.${before.kind === 'text' ? before.column : before.kind}`
  const values = valuesToReplace(table, { before, after, fence: Number(number) })
  // A signed message has no row: its source is the one part of its key, and what is replaced the other.
  return {
    name,
    id: table === 'received' && before.kind === 'ref' ? before.source : id,
    number: Number(number),
    values,
  }
}

function valuesToReplace(
  table: string,
  { before, after, fence }: { readonly before: StoredValue; readonly after: StoredValue; readonly fence: number },
): Replacement['values'] {
  if (before.kind === 'text' && after.kind === 'text') return [before.text, after.text]
  if (before.kind === 'ref' && after.kind === 'ref') return [before.ref, after.ref]
  if (before.kind === 'reference' && after.kind === 'reference')
    return [before.index, before.sealed ?? null, after.index, after.sealed ?? null]
  if (before.kind === 'message' && after.kind === 'message')
    return [...partsOf(before.message), ...partsOf(after.message)]
  if (before.kind === 'parked' && after.kind === 'parked') return [...partsOf(before), ...partsOf(after)]
  if (before.kind === 'outcome' && after.kind === 'outcome') {
    // Also a larger one than a request would put there: it was there before, and grows by a few dozen bytes.
    if (table === 'keys') return [before.raw ?? null, packOutcome(after.outcome, fence)]
    return [...columnsOf(before), ...columnsOf(after)]
  }
  throw new LatchkeyError('invariant', `a value of kind ${before.kind} was to be replaced by one of kind ${after.kind}`)
}

function columnsOf({ outcome }: StoredOutcome): Replacement['values'] {
  return [headersToText(outcome.headers), outcome.body ?? null]
}

function partsOf({ headers, payload }: StoredMessage['message'] | StoredParked): Replacement['values'] {
  return [JSON.stringify(headers), payload]
}
