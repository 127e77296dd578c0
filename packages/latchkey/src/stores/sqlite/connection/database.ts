/**
 * One file, two connections, one queue of writers. `own` serves reads and our own short writes, each of which begins and
 * ends without an await; `atomic` is for transactions that stay open while a handler works, so nothing else can join them.
 */
import { realpathSync } from 'node:fs'
import type { Clock } from '../../../ports/clock.ts'
import type { KeyRecord, StoreCheck } from '../../../ports/store.ts'
import type { MigrateOptions } from '../../shared/migrations.ts'
import { connectionWait, type Observed } from '../../shared/observed.ts'
import { checkPath, connect, type Connection, untilFree, useWriteAheadLog } from './open.ts'
import type { SqliteDatabase } from '../driver.ts'
import { asStoreError, faultError, faultOf, unavailable } from './errors.ts'
import { groupCommit, type ShortWrite, type Work, type WorkOnItem, type WriteRequest } from './group-commit.ts'
import type { Handle } from './handle.ts'
import { type ReadOrWrite, readThenWrite } from './read-then-write.ts'
import { gatherReads } from '../keys/read-batch.ts'
import { applyMigrations, schemaFault } from '../migrations/index.ts'
import { writeQueue, type WriteQueue } from './write-queue.ts'

export interface DatabaseOptions {
  readonly path: string
  readonly open: (path: string) => SqliteDatabase
  readonly clock: Clock
  readonly waitMs: number
  readonly waitersMax: number
  readonly observed?: Observed
}

export interface Database {
  readonly clock: Clock
  readonly waitMs: number
  readonly atomic: Connection
  /** One statement, at once, also while a transaction of this process is open. */
  read<T>(work: (handle: Handle) => T): Promise<T>
  /** The row of one identity, as `read` would find it; shares its statement with other calls of the same turn. */
  readRow<T>(id: string, then: (record: KeyRecord | undefined, handle: Handle) => T): Promise<T>
  /** As `readRow`, and as `write` where that gives `undefined`. */
  readOrWrite<T>(id: string, ways: ReadOrWrite<T>): Promise<T>
  /** As `read`, for several statements that must see the same moment. */
  snapshot<T>(work: (handle: Handle) => T): Promise<T>
  /** Begins and ends without an await, after the writers before it. Shares its transaction with others that wait. */
  write<T>(work: (handle: Handle) => T): Promise<T>
  /** As `write`. Those of the same `many` that share a transaction are done by one call of it. */
  writeItem<Item, T>(work: WorkOnItem<T, Item>): Promise<T>
  /** As `write`, but waits up to `limitMs`; nothing is written. What ended before, in this process or another, is seen. */
  readAfterWriters<T>(limitMs: number, work: (handle: Handle) => T): Promise<T>
  /** The turn to write, for longer than one turn of the event loop. The function it gives ends it. */
  enter(limitMs: number): Promise<() => void>
  /** Runs it; a driver's error becomes one of ours. */
  translateErrors<T>(run: () => Promise<T>): Promise<T>
  /** The same file, as SQLite names it. */
  isSameFile(name: string): boolean
  migrate(options?: MigrateOptions): Promise<void>
  check(): Promise<StoreCheck>
  close(): Promise<void>
}

export function openDatabase({ path, open, clock, waitMs, waitersMax, observed }: DatabaseOptions): Database {
  const file = checkPath(path)
  const own = connect(file, open)
  const atomic = connect(file, open)
  const reads = gatherReads({ own, clock, waitMs })
  const queue = writeQueue<ShortWrite>({
    clock,
    waitersMax,
    beforeTurn: reads.flush,
    lead: groupCommit({ own, clock, ...(observed && { observed }) }),
  })
  const gate = createGate({ own, file, clock, waitMs })

  const translateErrors = async <T>(run: () => Promise<T>): Promise<T> => {
    try {
      return await run()
    } catch (error) {
      throw asStoreError(error, file)
    }
  }
  const whenReady = <T>(run: () => Promise<T>) => (gate.isReady() ? run() : translateErrors(gate.ready).then(run))
  const reading = <T>(work: () => T) => whenReady(() => translateErrors(() => untilFree(clock, waitMs, work)))
  /** What a driver throws becomes one of our errors, without an async function around every call. */
  const promised = <T>(start: (done: (value: T) => void, failed: (error: unknown) => void) => void) =>
    new Promise<T>((resolve, reject) => start(resolve, error => reject(asStoreError(error, file))))
  const commit = <T>(limitMs: number, { work, committed, failed }: WriteRequest<T>) => {
    const sinceMs = clock.monotonicMs()
    queue.join({ sinceMs, deadlineMs: sinceMs + limitMs, work, value: undefined, committed, failed }, limitMs)
  }
  const written = <T>(limitMs: number, work: Work<T>) =>
    promised<T>((committed, failed) => commit(limitMs, { work, committed, failed }))
  const writing = <T>(limitMs: number, work: Work<T>) => whenReady(() => written(limitMs, work))

  const readOrWrite = readThenWrite({ reads, write: wanted => commit(waitMs, wanted), clock, waitMs, waitersMax })

  return {
    clock,
    waitMs,
    atomic,
    translateErrors,
    read: work => reading(() => work(own.handle)),
    snapshot: work => reading(() => oneTransaction(own, 'BEGIN', () => work(own.handle))),
    write: work => writing(waitMs, work),
    writeItem: work => writing(waitMs, work),
    readAfterWriters: writing,
    readRow: (id, then) =>
      whenReady(() =>
        promised((done, failed) => reads.join({ id, found: (record, handle) => done(then(record, handle)), failed })),
      ),
    readOrWrite: (id, ways) => whenReady(() => promised((done, failed) => readOrWrite(id, ways, { done, failed }))),
    enter: limitMs => whenReady(() => enter(queue, limitMs, observed)),
    isSameFile: name => name !== '' && realpathSync(name) === realpathSync(file),
    migrate: options =>
      translateErrors(async () => {
        await gate.useFile()
        await written(waitMs, handle => migrateOwn(handle, file, options))
      }),
    check: () => translateErrors(gate.check),
    async close() {
      if (!gate.shut()) return
      // A transaction that does not end in time is rolled back by SQLite when its connection closes.
      await queue.close(waitMs)
      reads.flush()
      atomic.close()
      own.close()
    },
  }
}

/** The turn to write is what a connection is elsewhere. */
function enter(queue: WriteQueue<ShortWrite>, limitMs: number, observed: Observed | undefined): Promise<() => void> {
  const connected = observed && connectionWait(observed)
  const turn = queue.enter(limitMs)
  if (connected === undefined) return turn
  return turn.then(leave => {
    connected()
    return leave
  })
}

/** Changes no tables that Latchkey did not make, or that a newer release has changed. */
function migrateOwn(handle: Handle, file: string, options?: MigrateOptions): void {
  const fault = schemaFault(handle)
  if (fault?.kind === 'foreign' || fault?.kind === 'newer') throw faultError(faultOf(fault, file))
  applyMigrations(handle, options)
}

/** `work` runs without an await, so that nothing else on this connection ever happens inside its transaction. */
function oneTransaction<T>(connection: Connection, begin: string, work: () => T): T {
  const { handle } = connection
  handle.exec(begin)
  try {
    const value = work()
    handle.exec('COMMIT')
    return value
  } catch (error) {
    connection.rollback()
    throw error
  }
}

interface Gate {
  /** The file is in WAL mode. */
  useFile(): Promise<void>
  /** And has our tables, or what is wrong with it. */
  check(): Promise<StoreCheck>
  /** The same, or rejects. */
  ready(): Promise<void>
  /** It was found fit, and is open: nothing to wait for. */
  isReady(): boolean
  /** False when it was shut before. */
  shut(): boolean
}

/** Checks the file until it was found fit once; then costs nothing. A file that is migrated later is found fit later. */
function createGate(options: { own: Connection; file: string; clock: Clock; waitMs: number }): Gate {
  const { own, file, clock, waitMs } = options
  let inWal = false
  let migrated = false
  let open = true
  // Shared by all calls that come before it ends, so that none overtakes another: the queue of writers is first come, first served.
  let checking: Promise<StoreCheck> | undefined
  const useFile = async () => {
    if (!open) throw unavailable('the SQLite store is closed')
    if (inWal) return
    await untilFree(clock, waitMs, () => useWriteAheadLog(own.handle, file))
    inWal = true
  }
  const inspect = async (): Promise<StoreCheck> => {
    await useFile()
    const fault = await untilFree(clock, waitMs, () => schemaFault(own.handle))
    if (fault !== undefined) return faultOf(fault, file)
    migrated = true
    return { kind: 'fit' }
  }
  const check = () => (checking ??= inspect().finally(() => (checking = undefined)))
  return {
    useFile,
    check: async () => (open && migrated ? { kind: 'fit' } : check()),
    async ready() {
      const found = await check()
      if (found.kind !== 'fit') throw faultError(found)
    },
    isReady: () => open && migrated,
    shut() {
      const first = open
      open = false
      return first
    },
  }
}
