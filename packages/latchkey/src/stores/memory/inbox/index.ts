/** Messages that consumers have parked. */
import type {
  DiscardResult,
  InboxAct,
  InboxInspection,
  ListedInboxMessage,
  NewParkedInboxMessage,
  ParkedInbox,
  ParkedInboxListing,
  ParkedInboxMessage,
  ParkedInboxPage,
  RedriveEnd,
  RedriveResult,
  TakenInboxMessage,
} from '../../../ports/faculties/inbox.ts'
import type { Act, OwnerResult } from '../../../ports/store.ts'
import { pageSize } from '../../shared/listing.ts'
import { actDetail, parkedCountMax, seqAfter } from '../../shared/inbox/parked-row.ts'
import type { Tables } from '../tables.ts'

/** Marked when it has a `dueAtMs`. */
export interface StoredParkedMessage extends NewParkedInboxMessage {
  readonly seq: number
  readonly times: number
  readonly firstParkedAtMs: number
  readonly parkedAtMs: number
  readonly redriveAs: string | undefined
  readonly dueAtMs: number | undefined
  readonly run: number
  readonly lockedUntilMs: number | undefined
}

export interface InboxTables {
  readonly parked: Map<string, StoredParkedMessage>
  /** By parked message; they outlive it. */
  readonly acts: Map<string, readonly InboxAct[]>
  seq: number
}

export function emptyInbox(): InboxTables {
  return { parked: new Map(), acts: new Map(), seq: 0 }
}

export function memoryInbox(tables: Tables): ParkedInbox {
  return {
    park: async message => park(tables, message),
    list: async listing => list(tables, listing),
    inspect: async id => inspect(tables, id),
    redrive: async (id, act, as) => redrive(tables, id, { act, as }),
    discard: async (id, act) => discard(tables, id, act),
    take: async which => take(tables, which),
    renew: async (taken, leaseMs) => renew(tables, taken, leaseMs),
    settle: async (taken, end) => settle(tables, taken, end),
    waiting: async () =>
      Math.min(parkedCountMax, [...tables.inbox.parked.values()].filter(({ dueAtMs }) => dueAtMs === undefined).length),
  }
}

function park({ inbox, now }: Tables, message: NewParkedInboxMessage): void {
  const before = inbox.parked.get(message.id)
  const parkedAtMs = now()
  if (before !== undefined) {
    const { cause, attempts } = message
    inbox.parked.set(message.id, { ...before, cause, attempts, parkedAtMs, times: before.times + 1 })
    return
  }
  inbox.seq += 1
  inbox.parked.set(message.id, {
    ...message,
    // Its caller may use the bytes again.
    payload: Uint8Array.from(message.payload),
    seq: inbox.seq,
    ...{ times: 1, firstParkedAtMs: parkedAtMs, parkedAtMs },
    ...{ redriveAs: undefined, dueAtMs: undefined, run: 0, lockedUntilMs: undefined },
  })
}

function list({ inbox, now }: Tables, { consumer, cause, limit, after }: ParkedInboxListing): ParkedInboxPage {
  const found = [...inbox.parked.values()]
    .filter(({ seq }) => seq > Number(seqAfter(after)))
    .filter(each => consumer === undefined || each.consumer === consumer)
    .filter(each => cause === undefined || each.cause === cause)
    .toSorted((left, right) => left.seq - right.seq)
  const page = found.slice(0, pageSize(limit))
  return {
    messages: page.map(each => listed(each, now())),
    next: found.length > page.length ? String(page.at(-1)?.seq) : undefined,
  }
}

function listed(message: StoredParkedMessage, nowMs: number): ListedInboxMessage {
  const { form: _form, headers: _headers, payload: _payload, ...head } = shown(message, nowMs)
  return head
}

function shown(stored: StoredParkedMessage, nowMs: number): ParkedInboxMessage {
  const { seq: _seq, redriveAs: as, dueAtMs, run: _run, lockedUntilMs: _until, ...message } = stored
  return { ...message, redrive: dueAtMs === undefined ? undefined : { as, dueInMs: dueAtMs - nowMs } }
}

function inspect({ inbox, now }: Tables, id: string): InboxInspection {
  const stored = inbox.parked.get(id)
  return { message: stored && shown(stored, now()), audit: inbox.acts.get(id) ?? [] }
}

function isTaken({ lockedUntilMs }: StoredParkedMessage, nowMs: number): boolean {
  return lockedUntilMs !== undefined && lockedUntilMs > nowMs
}

function redrive(
  { inbox, now }: Tables,
  id: string,
  { act, as }: { readonly act: Act; readonly as: string | undefined },
): RedriveResult {
  const stored = inbox.parked.get(id)
  if (stored === undefined) return { kind: 'not-found' }
  if (isTaken(stored, now())) return { kind: 'taken' }
  if (stored.messageId === undefined && as === undefined) return { kind: 'needs-id' }
  inbox.parked.set(id, { ...stored, redriveAs: as, dueAtMs: now() })
  addAct(inbox, id, { ...act, act: 'redrive', atMs: now(), detail: actDetail(stored, as) })
  return { kind: 'redriven' }
}

function discard({ inbox, now }: Tables, id: string, act: Act): DiscardResult {
  const stored = inbox.parked.get(id)
  if (stored === undefined) return { kind: 'not-found' }
  if (isTaken(stored, now())) return { kind: 'taken' }
  inbox.parked.delete(id)
  addAct(inbox, id, { ...act, act: 'discard', atMs: now(), detail: actDetail(stored) })
  return { kind: 'discarded' }
}

function addAct({ acts }: InboxTables, id: string, { by, reason, act, atMs, detail }: InboxAct): void {
  acts.set(id, [...(acts.get(id) ?? []), { by, reason, act, atMs, detail }])
}

type Taking = Parameters<ParkedInbox['take']>[0]

function take(tables: Tables, { consumer, operation, leaseMs }: Taking): TakenInboxMessage | undefined {
  const { inbox, now } = tables
  const nowMs = now()
  const [oldest] = [...inbox.parked.values()]
    .filter(each => each.consumer === consumer && each.operation === operation)
    .filter(each => !isTaken(each, nowMs) && isDue(tables, each, nowMs))
    .toSorted((left, right) => left.seq - right.seq)
  if (oldest === undefined) return undefined
  const taken = { ...oldest, run: oldest.run + 1, lockedUntilMs: nowMs + leaseMs }
  inbox.parked.set(taken.id, taken)
  return { run: taken.run, message: shown(taken, nowMs) }
}

/** A row that is gone proves nothing: its message waits for an operator. */
function isDue({ rows }: Tables, { dueAtMs, cause, rowId }: StoredParkedMessage, nowMs: number): boolean {
  if (dueAtMs !== undefined) return dueAtMs <= nowMs
  if (cause !== 'unknown' || rowId === undefined) return false
  const row = rows.get(rowId)
  return row !== undefined && row.state !== 'unknown'
}

/** Undefined: it is in other hands, or gone. */
function owned({ inbox }: Tables, { run, message }: TakenInboxMessage): StoredParkedMessage | undefined {
  const stored = inbox.parked.get(message.id)
  return stored?.run === run && stored.lockedUntilMs !== undefined ? stored : undefined
}

function renew(tables: Tables, taken: TakenInboxMessage, leaseMs: number): OwnerResult {
  const stored = owned(tables, taken)
  if (stored === undefined) return 'claim-lost'
  tables.inbox.parked.set(stored.id, { ...stored, lockedUntilMs: tables.now() + leaseMs })
  return 'written'
}

function settle(tables: Tables, taken: TakenInboxMessage, end: RedriveEnd): OwnerResult {
  const { inbox, now } = tables
  const stored = owned(tables, taken)
  if (stored === undefined) return 'claim-lost'
  const free = { ...stored, lockedUntilMs: undefined }
  if (end.kind === 'done') inbox.parked.delete(stored.id)
  else if (end.kind === 'retry') inbox.parked.set(stored.id, { ...free, dueAtMs: now() + end.dueInMs })
  else {
    const { cause, attempts } = end
    const again = { times: stored.times + 1, parkedAtMs: now(), redriveAs: undefined, dueAtMs: undefined }
    inbox.parked.set(stored.id, { ...free, cause, attempts, ...again })
  }
  return 'written'
}
