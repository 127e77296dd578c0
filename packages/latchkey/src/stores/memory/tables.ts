/** What the store holds. Everything that changes it does so without an await between its reading and its writing. */
import type { Clock } from '../../ports/clock.ts'
import type { LedgerCounts } from '../../ports/reconciliation.ts'
import type { LedgerTimes } from '../shared/ledger-run.ts'
import type { StoredBucket } from '../shared/token-bucket.ts'
import { type AdminTables, emptyAdmin } from './admin/tables.ts'
import { emptyInbox, type InboxTables } from './inbox/index.ts'
import type { Row } from './keys/row.ts'
import { emptyOutbox, type OutboxTables, type StoredMessage } from './outbox/lanes.ts'
import { type NewLine, type Trail, trail } from './audit/trail.ts'
import { evidenceLog, type EvidenceLog } from './reconcile/evidence-and-audit.ts'
import type { StoredReference } from '../../ports/faculties/references.ts'
import type { JournalRow } from './steps/journal.ts'
import { draftOf, type Draft, type Table } from './table.ts'

/** What a transaction may write. */
export interface Writable {
  readonly rows: Table<Row>
  readonly journals: Table<JournalRow>
  /** By row. */
  readonly references: Table<readonly StoredReference[]>
  /** The application's own. */
  table(name: string): Table<unknown>
  /** A message gets its position when it is committed. */
  append(message: Omit<StoredMessage, 'position'>): void
  /** A line of the trail gets its number when it is committed. */
  addLine(line: NewLine): void
  now(): number
}

export interface Tables extends Writable {
  readonly log: EvidenceLog
  /** Messages by source and ref; they are remembered beyond the rows they are about. */
  readonly received: Map<string, Received>
  readonly ledgers: Map<string, Ledger>
  /** Scopes to be erased, and when each was marked. */
  readonly erasures: Map<string, number>
  /** Of limits that are shared. */
  readonly buckets: Map<string, StoredBucket>
  readonly inbox: InboxTables
  readonly admin: AdminTables
  readonly outbox: OutboxTables
  readonly trail: Trail
}

export interface Received {
  readonly atMs: number
  /** Of the sender's clock. */
  readonly signedAtMs: number
}

export interface Ledger extends LedgerTimes {
  readonly run: number
  /** Of the last run that came to its end. */
  readonly last: (LedgerCounts & { readonly finishedAtMs: number }) | undefined
}

export function createTables(clock: Clock): Tables {
  const outbox = emptyOutbox()
  const lines = trail()
  const applicationTables = new Map<string, Map<string, unknown>>()
  return {
    rows: new Map(),
    journals: new Map(),
    references: new Map(),
    log: evidenceLog(),
    received: new Map(),
    ledgers: new Map(),
    erasures: new Map(),
    buckets: new Map(),
    inbox: emptyInbox(),
    admin: emptyAdmin(),
    outbox,
    trail: lines,
    now: steadyTime(clock),
    table(name) {
      const table = applicationTables.get(name) ?? new Map<string, unknown>()
      applicationTables.set(name, table)
      return table
    },
    append: outbox.add,
    addLine: lines.add,
  }
}

/** Dates from the wall clock, progress from the monotonic one: setting the machine's clock ends no lease. */
function steadyTime(clock: Clock): () => number {
  const offsetMs = clock.nowMs() - clock.monotonicMs()
  return () => Math.floor(offsetMs + clock.monotonicMs())
}

export interface TablesDraft extends Writable {
  isStale(): boolean
  apply(): void
}

export function draftTables(below: Writable): TablesDraft {
  const rows = draftOf(below.rows)
  const journals = draftOf(below.journals)
  const references = draftOf(below.references)
  const applicationTables = new Map<string, Draft<unknown>>()
  const messages: Parameters<Writable['append']>[0][] = []
  const lines: NewLine[] = []
  const drafts = () => [rows, journals, references, ...applicationTables.values()]
  return {
    rows,
    journals,
    references,
    now: below.now,
    table(name) {
      const table = applicationTables.get(name) ?? draftOf(below.table(name))
      applicationTables.set(name, table)
      return table
    },
    append: message => void messages.push(message),
    addLine: line => void lines.push(line),
    isStale: () => drafts().some(draft => draft.isStale()),
    apply() {
      for (const draft of drafts()) draft.apply()
      for (const message of messages) below.append(message)
      for (const line of lines) below.addLine(line)
    },
  }
}
