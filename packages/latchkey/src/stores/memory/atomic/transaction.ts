/** A transaction is a draft of the tables: it is applied by the commit, or dropped. */
import type { Clock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import type { HandlerEnd, TransactionEnd } from '../../../ports/store.ts'
import type { Table } from '../table.ts'
import { draftTables, type TablesDraft, type Writable } from '../tables.ts'
import type { TurnQueue } from './turn-queue.ts'

/**
 * What a handler writes with: tables of the application's own, which commit and roll back with the key. A table is there when it
 * is first named.
 *
 *     const orders = tx.table<Order>('orders')
 *     orders.set(order.id, order)
 *
 * Every method throws once the transaction has ended.
 */
export interface MemoryTx {
  table<Value>(name: string): MemoryTable<Value>
  /** Begins a nested transaction, which `commit` keeps and `rollback` undoes. Neither ends the whole. */
  begin(): void
  commit(): void
  rollback(): void
}

/** Rows by key. Values are copied on the way in and out, by `structuredClone`, so that a rollback undoes every change. */
export interface MemoryTable<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): void
  delete(key: string): void
  entries(): readonly (readonly [key: string, value: Value])[]
}

/** One open transaction, seen from inside the store. */
export interface OpenTransaction {
  readonly tx: MemoryTx
  /** The identities it holds, or is about to. */
  readonly identities: Set<string>
  /** Waits for its turn. Before that it holds nothing, so that a duplicate is answered at once. */
  begin(): Promise<void>
  hasBegun(): boolean
  end(): 'open' | HandlerEnd
  /** Runs `work` on its draft; throws when it has not begun, or has ended. */
  use<T>(work: (draft: Writable) => T): T
  /** Rejects when the transaction was open for too long; it is rolled back then. */
  readonly overdue: Promise<never>
  commit(): TransactionEnd
  rollback(): void
}

export interface TransactionOptions {
  readonly tables: Writable
  readonly queue: TurnQueue
  readonly clock: Clock
  readonly transactionMs: number
  readonly waitMs: number
}

type Stage =
  | { readonly kind: 'idle' }
  | { readonly kind: 'open'; readonly leave: () => void }
  | { readonly kind: 'ended'; readonly how: HandlerEnd; readonly error: LatchkeyError }

export function openTransaction({ tables, queue, clock, transactionMs, waitMs }: TransactionOptions): OpenTransaction {
  // The first is the whole, each other one is nested in the one before it.
  const drafts: [TablesDraft, ...TablesDraft[]] = [draftTables(tables)]
  let stage: Stage = { kind: 'idle' }
  let beginning: Promise<void> | undefined
  let reportOverdue: (error: LatchkeyError) => void = () => {}
  const overdue = new Promise<never>((_, reject) => (reportOverdue = reject))
  overdue.catch(() => undefined)

  const end = (how: HandlerEnd, error: LatchkeyError) => {
    // The first reason is the true one.
    if (stage.kind === 'ended') return
    const { leave } = { leave: () => {}, ...stage }
    stage = { kind: 'ended', how, error }
    leave()
  }
  const expire = () => {
    const error = openForTooLong(transactionMs)
    end('rolled-back', error)
    reportOverdue(error)
  }
  const start = async () => {
    const done = await queue.enter(waitMs)
    // The caller may have given up while this one waited.
    if (stage.kind === 'ended') {
      done()
      throw stage.error
    }
    const cancel = clock.after(transactionMs, expire)
    stage = { kind: 'open', leave: () => (cancel(), done()) }
  }
  const use = <T>(work: (draft: Writable) => T): T => {
    if (stage.kind === 'ended') throw stage.error
    if (stage.kind === 'idle') throw new LatchkeyError('not-a-transaction', 'this transaction has not begun yet')
    return work(drafts.at(-1) ?? drafts[0])
  }
  const commit = (): TransactionEnd => {
    if (stage.kind === 'ended') throw stage.error
    const isStale = drafts[0].isStale()
    if (!isStale) {
      // A nested one that was not ended is committed with the whole.
      for (const nested of drafts.toReversed()) nested.apply()
    }
    end(isStale ? 'rolled-back' : 'committed', over())
    return isStale ? { kind: 'conflict', cause: changedMeanwhile() } : { kind: 'committed' }
  }
  return {
    tx: txOver(use, drafts),
    identities: new Set(),
    overdue,
    begin: () => (beginning ??= start()),
    hasBegun: () => stage.kind !== 'idle',
    end: () => (stage.kind === 'ended' ? stage.how : 'open'),
    use,
    commit,
    rollback: () => end('rolled-back', over()),
  }
}

function txOver(use: OpenTransaction['use'], drafts: TablesDraft[]): MemoryTx {
  const endNested = (command: string) =>
    use(() => {
      const nested = drafts.length > 1 ? drafts.pop() : undefined
      return nested ?? refuseToEnd(command)
    })
  return {
    table: <Value>(name: string) => copyingTable<Value>(work => use(draft => work(draft.table(name)))),
    begin: () => use(draft => void drafts.push(draftTables(draft))),
    commit: () => endNested('commit').apply(),
    rollback: () => void endNested('rollback'),
  }
}

/** `Value` is the application's word for what it has put there. */
export function copyingTable<Value>(use: <T>(work: (table: Table<unknown>) => T) => T): MemoryTable<Value> {
  const copy = (value: unknown) => structuredClone(value) as Value
  return {
    get: key => use(table => copy(table.get(key))),
    set: (key, value) => use(table => void table.set(key, copy(value))),
    delete: key => use(table => void table.delete(key)),
    entries: () => use(table => [...table.entries()].map(([key, value]) => [key, copy(value)] as const)),
  }
}

function refuseToEnd(command: string): never {
  throw new LatchkeyError(
    'not-a-transaction',
    `tx.${command}() would end Latchkey's transaction: return to commit, throw to roll back; begin() and ${command}() in pairs are fine`,
  )
}

function over(): LatchkeyError {
  return new LatchkeyError(
    'not-a-transaction',
    'this transaction has ended: its tx is good only until the handler returns',
  )
}

function changedMeanwhile(): Error {
  return new Error('a row that this transaction wrote was changed by another call before the commit')
}

function openForTooLong(transactionMs: number): LatchkeyError {
  return new LatchkeyError(
    'store-unavailable',
    `the transaction was open for ${transactionMs} ms and was rolled back: nothing it did has happened. ` +
      'Every other transaction waits for it; make the handler shorter, or raise transactionMs',
  )
}
