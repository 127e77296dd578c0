/**
 * A trail that outlives the rows: one line for each execution that ended, committed with its end, and for each refused misuse.
 *
 * Lines are added and read, never changed. They go by a retention of their own, or when a sink has them; no reaper and no `forget` deletes them.
 * What operators do has its own audit, with a name and a reason.
 */
import type { Identity, OwnerResult, Store } from '../store.ts'

/**
 * `completed`: it has an answer. `failed`: proven that nothing happened, it may run again. `parked`: it waits for an operator. `unknown`: an effect
 * may have happened. `resumed`: the effect in doubt was settled, and the remaining steps run. `misuse`: the key was used again for another
 * request, which was refused.
 */
export type AuditedEnd = 'completed' | 'failed' | 'parked' | 'unknown' | 'resumed' | 'misuse'

/** Never a key, a header or a body. */
export interface AuditLine {
  /** Names the line for good: a sink that gets it twice knows it by this. */
  readonly lineId: string
  /** By the store's clock. */
  readonly atMs: number
  readonly what: AuditedEnd
  /** Who asked. Undefined: the tenant was erased. */
  readonly scope: string | undefined
  readonly operation: string
  /** Of the row, which may be gone. */
  readonly id: string
  /** Of the grant that ended. Of a misuse: the one that the row has; 0: it has none any more. */
  readonly fence: number
  /** Of an answer. */
  readonly status: number | undefined
  /** Of the request; of a misuse, the refused one's. Undefined: the tenant was erased. */
  readonly fingerprint: Uint8Array | undefined
}

/** The refused request. */
export interface Misuse {
  readonly identity: Identity
  readonly fingerprint: Uint8Array
}

export interface AuditQuery {
  /** As it stands in the lines, compared byte by byte. */
  readonly scope?: string
  /** Of one row. */
  readonly id?: string
  /** Not before this. */
  readonly fromMs?: number
  /** At most 1,000. */
  readonly limit: number
  /** The `next` of the page before. */
  readonly after?: string
}

export interface AuditPage {
  /** By time. A line whose transaction was still open may appear on a page that was read before: to miss none, use a sink. */
  readonly lines: readonly AuditLine[]
  readonly next: string | undefined
}

/** Lines for a sink, in the hands of one process; `run` rises and fences it. */
export interface TakenLines {
  readonly run: number
  /** By time. */
  readonly lines: readonly AuditLine[]
}

export interface AuditRecords<Tx> {
  /** The same store, which adds a line in the commit of every end: completed, failed, parked, unknown, and out of unknown. Always the same object. */
  recording(): Store<Tx>
  /** Adds a line in a commit of its own. */
  addMisuse(misuse: Misuse): Promise<void>
  page(query: AuditQuery): Promise<AuditPage>
  /** Deletes the oldest lines that are older than this, and none that is younger than a day. Returns how many. */
  expire(options: { readonly olderThanMs: number; readonly limit: number }): Promise<number>
  /** The oldest lines. Undefined: there are none, or another process has them until its lease ends. */
  take(options: { readonly limit: number; readonly leaseMs: number }): Promise<TakenLines | undefined>
  /** The sink has them: they are deleted, and the lease ends. `claim-lost`: another process has taken lines since, and nothing is deleted. */
  handedOver(taken: TakenLines): Promise<OwnerResult>
  /** The sink does not have them: the lease ends. */
  giveBack(taken: TakenLines): Promise<void>
}
