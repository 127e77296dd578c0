/**
 * The store port, and the glossary.
 *
 * key          the client's opaque string
 * scope        the tenant or caller; never taken from the body
 * operation    what is to be done: a stable, explicit name
 * identity     (scope, operation, key), hashed to a uuid: the primary key
 * fingerprint  versioned hash of the request
 * claim        the right to execute one identity until its lease runs out
 * fence        rises by one at every grant and never falls, also over an expired row
 * claimId      128 random bits naming one grant; every owner write matches fence AND claimId
 * recovery     what may happen to the row when its owner dies; written at the grant
 * outcome      what is stored and replayed
 * evidence     what settles an unknown
 * parked       a mark: no automatic work on the row until an operator acts
 * generation   one use of a key: a row from its first grant until it is expired or forgotten
 * faculty      what a store may have beside its core, such as steps or an outbox; `traits` names those it has
 *
 * Every time in this port is the store's: durations go in, "left" durations come out, and instants are for people to read.
 * Results are values. A method rejects only when the store failed, and then its effect is unknown to the caller.
 */
import type { AdminRecords } from './faculties/admin.ts'
import type { AuditRecords } from './faculties/audit-records.ts'
import type { Erasure } from './faculties/erasure.ts'
import type { ParkedInbox } from './faculties/inbox.ts'
import type { Outcome } from './outcome.ts'
import type { Outbox } from './outbox.ts'
import type { Quotas } from './faculties/quotas.ts'
import type { References } from './faculties/references.ts'
import type { EvidenceSource, EvidenceVerdict, FoundVerdict, Ledgers, Reconciliation } from './reconciliation.ts'
import type { Values } from './faculties/values.ts'
import type { StoreObserver } from './store-observer.ts'
import type { Journal, Phases, Steps, UnreadableJournal, WorkInput } from './steps.ts'

export type State = 'pending' | 'in_progress' | 'completed' | 'failed_retryable' | 'unknown'

/** `unreadable`: a newer version wrote the row, or it is damaged. Nothing of it runs until an operator has inspected it. */
export type RowState = State | 'unreadable'

/**
 * `hold`: a dead lease becomes `unknown`. `rerun`: repeating is harmless, the next request takes over. `resume`: phased
 * work, continued after its last finished step.
 */
export type Recovery = 'hold' | 'rerun' | 'resume'

export interface Identity {
  /** First 16 bytes of SHA-256 over the length-prefixed parts, in uuid spelling. */
  readonly id: string
  /** Readable form of the scope, for people and for listing. */
  readonly scope: string
  readonly operation: string
}

export interface Claim {
  readonly id: string
  readonly fence: number
  readonly claimId: string
}

/** A claim whose reply was lost: the caller does not know its fence, nor whether it was granted. */
export type LostClaim = Pick<Claim, 'id' | 'claimId'>

/** What can be read of every row. */
interface RowFacts {
  readonly id: string
  readonly scope: string
  readonly operation: string
  readonly fingerprint: Uint8Array
  readonly fence: number
  readonly claimId: string
  readonly attempts: number
  /** How often a lease of this row ran out with its owner silent. */
  readonly crashes: number
  /** What the lease has left; zero or less: the owner is overdue. Only `in_progress` has one. */
  readonly leaseLeftMs: number
  /** When a `failed_retryable` row may run again; zero or less: now. */
  readonly dueInMs: number
  /** Finished, not parked, past its retention and past its tombstone: counts as absent. */
  readonly expired: boolean
  /** Completed and past its retention, with a tombstone: never granted, and it has no outcome any more. */
  readonly gone: boolean
  readonly parked: boolean
  readonly createdAtMs: number
  /** How long ago that was, by the store's clock. */
  readonly ageMs: number
  readonly completedAtMs: number | undefined
  readonly expiresAtMs: number
  readonly description: string | undefined
  readonly lastErrorCode: string | undefined
}

export interface ReadableRecord extends RowFacts {
  readonly state: State
  readonly recovery: Recovery
  /** Only when `completed`, and only from `claim`, `read` and `inspect`; a listing leaves it out. */
  readonly outcome: Outcome | undefined
}

/**
 * A row that this version cannot read: a state, a recovery or an outcome that it does not know, an outcome that is cut off or
 * missing. A value, so that it does not affect other rows. It is never granted, unless it is finished and `expired`.
 */
export interface UnreadableRecord extends RowFacts {
  readonly state: 'unreadable'
  readonly recovery: undefined
  readonly outcome: undefined
  /** For the operator. */
  readonly why: string
}

export type KeyRecord = ReadableRecord | UnreadableRecord

export interface ClaimRequest {
  readonly identity: Identity
  readonly claimId: string
  readonly fingerprint: Uint8Array
  readonly recovery: Recovery
  readonly leaseMs: number
  /** `expiresAt` is written once, at the grant: now + this. It covers maximum hold and retention. */
  readonly expiresInMs: number
  /** How long after its retention a completed row is remembered as gone. Absent: not at all, the key is new again. */
  readonly tombstoneMs?: number | undefined
  /** Absent: the row's own stays. */
  readonly description: string | undefined
  /** Phased work: stored with the row if this grant begins it; a resumed row has its own. */
  readonly work?: WorkInput | undefined
  /** Absent: every row that a claim may be granted. */
  readonly takeOver?: TakeOver | undefined
}

/**
 * Which existing rows may change hands. `none`: the claim is granted only where there is no row, or an expired one; any other row is
 * `seen`. A grant: also the row that still has this very grant. So a caller can be authorised for a row before it gets it.
 */
export type TakeOver = 'none' | Pick<Claim, 'fence' | 'claimId'>

/** Work for later: the row and its input in one commit. Its fence is 1, or the expired row's + 1; no attempt counts yet. */
export interface EnqueueRequest extends Omit<ClaimRequest, 'recovery' | 'leaseMs' | 'work' | 'takeOver'> {
  readonly work: WorkInput
}

/** `queued` if and only if the row was absent, or finished and expired. Everything else is `seen`, and the row is untouched. */
export type EnqueueResult = { readonly kind: 'queued' } | { readonly kind: 'seen'; readonly record: KeyRecord }

/**
 * `won` if and only if the row was absent; or finished and expired (not gone); or, with the same fingerprint and not parked,
 * `pending` or `failed_retryable` and due, or `in_progress` with a dead lease and recovery `rerun`,
 * or `resume` without an open intent that may not be repeated; as far as `takeOver` allows it.
 * Everything else is `seen`, and the row is untouched.
 */
export type ClaimResult =
  | {
      readonly kind: 'won'
      readonly claim: Claim
      readonly attempt: number
      /** How often an owner of this row died, this grant's reason included. */
      readonly crashes: number
      readonly from: GrantedFrom
      /** Present exactly for phased work: its input, and its finished steps. */
      readonly journal?: Journal | UnreadableJournal
    }
  | { readonly kind: 'seen'; readonly record: KeyRecord }

export type GrantedFrom = 'none' | 'expired' | 'pending' | 'failed_retryable' | 'dead-lease'

/** `claim-lost`: fence or claimId no longer match, or the row has left the states its owner may write. */
export type OwnerResult = 'written' | 'claim-lost'

export interface Failure {
  /** `failed_retryable` only when it is proven that nothing happened: an open intent of the row becomes `again`. */
  readonly to: 'failed_retryable' | 'unknown'
  /** Short code for operators: an error's name or code, never a message that may hold personal data. */
  readonly errorCode: string
  /** `failed_retryable`: not before this. */
  readonly dueInMs: number
}

/** How an operation runs, and so what its store must carry. */
export type OperationKind = 'atomic' | 'guarded' | 'phased' | 'deferred'

/** What a store may have beside its core: the members of `Store` of these names; `transactions` are its `transactor`. */
export type Faculty =
  | 'transactions'
  | 'steps'
  | 'phases'
  | 'outbox'
  | 'reconciliation'
  | 'ledgers'
  | 'values'
  | 'erasure'
  | 'auditRecords'
  | 'quotas'
  | 'inbox'
  | 'references'
  | 'admin'

/** What a store promises. It is checked when an operation is declared, and by the conformance suite. */
export interface StoreTraits {
  /** The operations it carries. `phased` and `deferred` need the faculty `steps`, `atomic` needs `transactions`. */
  readonly kinds: readonly OperationKind[]
  /**
   * Whether the key's row and rows of the application can commit together. `items`: only as a list of writes that is sent with the
   * commit, with nothing read in between.
   */
  readonly transactional: true | 'items' | false
  /** A written answer survives a crash of the process and of the store. */
  readonly durable: boolean
  /** Whose clock decides leases: the store's own, or that of the process that calls it. */
  readonly clock: 'store' | 'client'
  /** Whether several processes may share it. */
  readonly processes: 'many' | 'one'
  /** `dense`: 1, 2, 3 … · `rising`: rows may vanish, so the fence is seeded from time. */
  readonly fence: 'dense' | 'rising'
  /** What it has beside the core. It has the member of each faculty that it names, and of no other. */
  readonly faculties: readonly Faculty[]
  /** The most connections it can use, where that is known: one cannot hold a handler's query and its heartbeat. */
  readonly connections: number | undefined
  /**
   * How long a call may wait in this process before the store sends or refuses it. An answer is waited for that much longer, so that a wait
   * in the process's own queue is never taken for a store that does not answer. Absent: calls do not wait.
   */
  readonly queueMsMax?: number
}

export interface Swept {
  readonly id: string
  readonly operation: string
  readonly to: 'unknown' | 'failed_retryable'
}

/** A row that a worker may claim and resume. */
export interface Resumable {
  readonly identity: Identity
  readonly fingerprint: Uint8Array
  /** How often its owner died: a worker that handles several rows at once runs a suspect alone. */
  readonly crashes: number
  /** No step of it has begun, and its deadline has passed: it ends without its definition. */
  readonly overdue: boolean
}

export interface Listing {
  readonly state?: State
  /** Only parked rows: the dead letters. */
  readonly parked?: true
  readonly operation?: string
  /** As it stands in the rows, compared byte by byte. */
  readonly scope?: string
  /** At most 1,000. */
  readonly limit: number
  /** The `next` of the page before. */
  readonly after?: string
}

export interface Page {
  readonly records: readonly KeyRecord[]
  readonly next: string | undefined
}

/** Who acts, and why. Both are required, stored for good, and committed with the act. */
export interface Act {
  readonly by: string
  readonly reason: string
}

export type SettleResult =
  | { readonly kind: 'settled' }
  | { readonly kind: 'not-found' }
  | WrongState
  /** The row needs a verdict about its open effect (`value`), or about the whole (`outcome`). Nothing was changed. */
  | { readonly kind: 'wrong-verdict'; readonly needs: 'value' | 'outcome'; readonly effect: string | undefined }
export type ForgetResult = { readonly kind: 'forgotten' } | { readonly kind: 'not-found' } | WrongState
export type UnparkResult =
  | { readonly kind: 'unparked' }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'not-parked' }
export interface WrongState {
  readonly kind: 'wrong-state'
  /** `unreadable`: this version cannot judge the row. `forget` deletes it. */
  readonly state: RowState
}

export interface AuditEntry extends Act {
  /** `settle`, `forget`, `unpark`, or what an operator did through `latchkey/admin`. */
  readonly act: string
  readonly atMs: number
  readonly detail: string
}

export interface Evidence {
  readonly source: EvidenceSource
  readonly verdict: EvidenceVerdict
  /** The effect it is about, where it is about one. */
  readonly effect: string | undefined
  readonly atMs: number
  /** The evidence moved the row; otherwise it arrived too late and is only stored. */
  readonly applied: boolean
}

export interface Inspection {
  /** Absent when the row was forgotten or reaped: its audit stays. */
  readonly record: KeyRecord | undefined
  readonly evidence: readonly Evidence[]
  readonly audit: readonly AuditEntry[]
}

/** What is wrong with a store that answers, but cannot do its work. */
export interface StoreFault {
  /** `store-` and this is the code of the error that refuses a request. */
  readonly kind: 'not-migrated' | 'newer' | 'foreign' | 'rights' | 'read-only' | 'too-old' | 'unsafe'
  /** Names the fault and the fix. For the operators of the server: it is never sent to a client. */
  readonly message: string
}

/** `warning`: it serves requests, and its operators should know this. */
export type StoreCheck = { readonly kind: 'fit'; readonly warning?: string } | StoreFault

/** The core, which every store has, and the faculties beside it, which a store may leave out. */
export interface Store<Tx = unknown> {
  readonly name: string
  readonly traits: StoreTraits
  /** From now on tells this observer, which does not throw, and no other. Never called: nothing is measured. Absent: there is nothing to tell. */
  observe?(observer: StoreObserver): void
  /**
   * Whether this process can use the store as it is: its tables, their version, the rights on them. One round trip that writes nothing; once it
   * was `fit` it is not asked again. Rejects when the store does not answer. Absent: there is nothing that could be wrong.
   */
  check?(): Promise<StoreCheck>
  /** Faculty `transactions`: the key's row commits with rows of the application. Absent: no atomic operation, no phase and no outbox. */
  readonly transactor?: Transactor<Tx> | undefined
  /** Faculty `steps`: input, intents and results of phased work. Needs no transaction of the application's. Absent: no phased or deferred work. */
  readonly steps?: Steps | undefined
  /** Faculty `phases`: a step commits with rows of the application. Needs `steps` and `transactions`. Absent: phased work has effects only. */
  readonly phases?: Phases<Tx> | undefined
  /** Faculty `outbox`: messages that exist exactly when their transaction committed. Needs `transactions`. Absent: nothing can be appended. */
  readonly outbox?: Outbox<Tx> | undefined
  /** Faculty `reconciliation`: evidence and look-ups settle what is unknown. Absent: only an operator, or the late owner itself, settles it. */
  readonly reconciliation?: Reconciliation | undefined
  /** Faculty `ledgers`: one process at a time compares with a provider's ledger. Needs `reconciliation`. Absent: no ledger is compared. */
  readonly ledgers?: Ledgers | undefined
  /** Faculty `values`, for `rewrap`. Absent: what is stored cannot be encrypted under another key. */
  readonly values?: Values | undefined
  /** Faculty `erasure`, for `erase`. Absent: a tenant cannot be erased. Every `reap` continues the erasures that are marked. */
  readonly erasure?: Erasure | undefined
  /** Faculty `auditRecords`, for `audit` of `createLatchkey`. Absent: no line outlives its row. */
  readonly auditRecords?: AuditRecords<Tx> | undefined
  /** Faculty `quotas`, for limits over all processes, of open keys and of stored bytes. Absent: a scope has the limits of each process only. */
  readonly quotas?: Quotas | undefined
  /** Faculty `inbox`: messages that consumers have parked. Absent: `inbox()` of `latchkey/inbox` refuses the store. */
  readonly inbox?: ParkedInbox | undefined
  /** Faculty `references`: rows are found by the names that handlers gave them. Absent: `x.reference` reports that it stored nothing. */
  readonly references?: References<Tx> | undefined
  /** Faculty `admin`: acts of people that commit with their audit, and what the fleet says of itself. Absent: `createAdmin` refuses every act. */
  readonly admin?: AdminRecords | undefined

  claim(request: ClaimRequest): Promise<ClaimResult>
  /** none, or an expired row → `pending`, due now, recovery `resume`. Needs the faculty `steps`; a store without it refuses. */
  enqueue(request: EnqueueRequest): Promise<EnqueueResult>
  /** A primary-key read; writes nothing. */
  read(id: string): Promise<KeyRecord | undefined>
  /** Moves the lease, never the fence. Also works after the lease has run out, as long as no other owner has replaced this one. */
  heartbeat(claim: Claim, leaseMs: number): Promise<OwnerResult>
  /**
   * `in_progress` → `completed`, whatever the clock says, while fence and claimId match. Repeating it after a lost reply is
   * `written` again. From `unknown`, with fence and claimId still matching, the late answer is evidence and settles the row,
   * unless an effect of phased work is open, which it says nothing about. Otherwise it is `claim-lost`, and the answer is stored as evidence.
   * `expiresAt` moves only if less than `retentionMs` would be left.
   */
  complete(claim: Claim, outcome: Outcome, retentionMs: number): Promise<OwnerResult>
  /**
   * `in_progress` → `failed_retryable` or `unknown`, guarded as `complete`; a late `failed_retryable` settles an `unknown`: guarded work to
   * `failed_retryable`, phased work to `pending`.
   */
  fail(claim: Claim, failure: Failure): Promise<OwnerResult>
  /** Undoes a claim whose handler never ran: to `failed_retryable`, due now. By claimId alone: the fence may not be known. */
  release(id: string, claimId: string): Promise<'released' | 'not-yours'>
  /**
   * As `release`, for claims whose replies were lost: at most 1,000 in one call. A row that was swept to `unknown` under the claim
   * meanwhile is settled as never happened, with the late owner's evidence, unless evidence that a reconciler could apply says that it happened.
   * Phased work is left to its workers. Returns the claimIds that are over: released by this call or before.
   */
  releaseMany(claims: readonly LostClaim[]): Promise<readonly string[]>

  /**
   * Dead leases by their recovery: `hold` → `unknown`; `rerun` → `failed_retryable`; `resume` with an open intent that may not be
   * repeated → `unknown`, otherwise left to a resumer. Crashes + 1. With `id`: that row only.
   */
  sweep(options: { readonly limit: number; readonly id?: string }): Promise<readonly Swept[]>
  /** Phased rows that `claim` would grant: dead leases, and `pending` or `failed_retryable` and due. Not parked ones. */
  resumable(options: { readonly limit: number }): Promise<readonly Resumable[]>
  /** Owner: `in_progress` → `failed_retryable`, parked. Its open intents stay open. No claim is granted until it is unparked. */
  park(claim: Claim, cause: string): Promise<OwnerResult>
  /**
   * Deletes expired `completed` and `failed_retryable` rows with their steps and evidence, never a parked one or another. A `completed` row with
   * a tombstone loses all of that and stays, gone, until the tombstone's time is over. Returns how many rows it changed.
   */
  reap(options: { readonly limit: number }): Promise<number>

  list(listing: Listing): Promise<Page>
  inspect(id: string): Promise<Inspection>
  /**
   * An operator's verdict on an `unknown` row, with evidence and audit in the same commit. Guarded: → `completed` or `failed_retryable`.
   * Phased: → `pending`, with the open effect's result recorded, or, if it never happened, with its epoch raised; phased without an
   * open effect takes an outcome → `completed`. The fence stays, a parked mark is removed. No quarantine: the operator is responsible.
   */
  settle(id: string, verdict: FoundVerdict, act: Act, retentionMs: number): Promise<SettleResult>
  /** Deletes a `completed` row, audited in the same commit. Also an unreadable one, unless its owner's lease still runs. */
  forget(id: string, act: Act): Promise<ForgetResult>
  /** Parked → not parked, due now, crashes 0, its expiry at least as far away again as it was; audited in the same commit. */
  unpark(id: string, act: Act): Promise<UnparkResult>
}

/** A store with every faculty. */
export interface FullStore<Tx> extends Store<Tx> {
  readonly transactor: Transactor<Tx>
  readonly steps: Steps
  readonly phases: Phases<Tx>
  readonly outbox: Outbox<Tx>
  readonly reconciliation: Reconciliation
  readonly ledgers: Ledgers
  readonly values: Values
  readonly erasure: Erasure
  readonly auditRecords: AuditRecords<Tx>
  readonly quotas: Quotas
  readonly inbox: ParkedInbox
  readonly references: References<Tx>
  readonly admin: AdminRecords
}

/** A store on which atomic operations and phases are type errors. Return it from a store without transactions. */
export interface StoreWithoutTransactions extends Store<never> {
  readonly transactor?: undefined
  readonly phases?: undefined
  readonly outbox?: undefined
}

/** What `record` will write: the row of an atomic operation is inserted as completed. */
export interface AtomicRequest {
  readonly identity: Identity
  readonly claimId: string
  readonly fingerprint: Uint8Array
  readonly retentionMs: number
  /** As in a claim. */
  readonly tombstoneMs?: number | undefined
  readonly description: string | undefined
  /** As in a claim. */
  readonly takeOver?: TakeOver | undefined
}

/** `busy`: another transaction holds this identity, and no finished row of it can be seen. `free` carries the fence that `record` must find unchanged (0: no row). */
export type Reservation =
  | { readonly kind: 'free'; readonly fence: number; readonly from: GrantedFrom }
  | { readonly kind: 'busy' }
  | { readonly kind: 'seen'; readonly record: KeyRecord }

/**
 * `conflict`: rolled back because another transaction won (serialization failure, duplicate key, deadlock); read again in a
 * new one. `commit-unknown`: COMMIT was sent and no reply came. `ended-by-handler`: the work itself ended it, without the transactor;
 * `error` is what the work rejected with, if it did. `misused`: rolled back by the store while the work still ran; the cause names the mistake.
 */
export type TransactionEnd =
  | { readonly kind: 'committed' }
  | { readonly kind: 'rolled-back' }
  | { readonly kind: 'conflict'; readonly cause: unknown }
  | { readonly kind: 'commit-unknown'; readonly cause: unknown }
  | { readonly kind: 'ended-by-handler'; readonly how: HandlerEnd; readonly error?: unknown }
  | { readonly kind: 'misused'; readonly cause: unknown }

/** `unseen`: it has ended, and the store cannot tell how. */
export type HandlerEnd = 'committed' | 'rolled-back' | 'unseen'

/**
 * `taken`: the fence is not the reserved one; roll back. `aborted`: a statement in the transaction has failed and the database takes no
 * more in it. `ended`: this is no longer the transaction that reserved. Nothing was written then.
 */
export type Recorded = 'recorded' | 'taken' | 'aborted' | 'ended'

export interface Transactor<Tx> {
  /**
   * Opens a transaction of its own and commits or rolls back as `work` says. A rejection of `work` rolls back and rejects
   * with the same error, unless it is a conflict between transactions. `first` is what `work` will reserve before anything
   * else: a store may send it together with the beginning. Rejects with `overloaded` where its own limit of open transactions
   * is reached. The `tx` it hands out cannot end it: a nested transaction is a savepoint.
   */
  transaction(work: (tx: Tx) => Promise<'commit' | 'rollback'>, first?: AtomicRequest): Promise<TransactionEnd>
  /** A caller's own transaction, proven to be one; rejects with `not-a-transaction` at once otherwise. */
  adopt(tx: unknown): Promise<Tx>
  /** Takes the identity for the length of the transaction, then reads it. Never waits for another transaction. */
  reserve(tx: Tx, request: AtomicRequest): Promise<Reservation>
  /** What `claim` would grant → `completed`, recovery `rerun`, if the fence is still the reserved one. */
  record(tx: Tx, request: AtomicRequest, outcome: Outcome, reservedFence: number): Promise<Recorded>
  /**
   * As `record`, in a transaction of `transaction`, and it is the last statement before its end. So a store may send it
   * together with the commit, and return `recorded` now and `conflict` there. Absent: the store gains nothing by it.
   */
  recordLast?(tx: Tx, request: AtomicRequest, outcome: Outcome, reservedFence: number): Promise<Recorded>
  /** After the work in an adopted transaction, when nothing more is recorded in it: whether the work ended it. */
  endOf(tx: Tx): 'open' | HandlerEnd
  /** After a lost COMMIT reply: waits, at most `waitMs`, until the old transaction has ended, then reads. */
  readAfterCommit(id: string, waitMs: number): Promise<KeyRecord | undefined>
}
