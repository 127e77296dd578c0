/** Opening the file as we need it: durable, never blocking, and refused with a clear sentence where that cannot be. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Clock, sleep } from '../../../ports/clock.ts'
import { LatchkeyError, misconfigured } from '../../../ports/errors.ts'
import type { SqliteDatabase } from '../driver.ts'
import { isBusy, isStaleSnapshot, unavailable } from './errors.ts'
import { type Handle, handleOf, isDatabase } from './handle.ts'

/** A write waits for the disk about a millisecond, so the first tries come quickly; 20 ms keeps many processes fair. */
const retryDelayMaxMs = 20

export interface Connection {
  readonly handle: Handle
  /** Ends whatever transaction is open. If not even that works, the handle is replaced by a new one. */
  rollback(): void
  close(): void
}

export function connect(path: string, open: (path: string) => SqliteDatabase): Connection {
  let handle = openHandle(path, open)
  return {
    get handle() {
      return handle
    },
    rollback() {
      try {
        if (handle.inTransaction()) handle.exec('ROLLBACK')
      } catch {
        const broken = handle
        handle = openHandle(path, open)
        broken.close()
      }
    },
    close: () => handle.close(),
  }
}

/**
 * While another process repairs the log that a killed one left, or closes the file as its last user, even the first read is refused.
 * Opening cannot report that later, so it waits, and blocks.
 */
const openWaitMs = 5_000

function openHandle(path: string, open: (path: string) => SqliteDatabase): Handle {
  const database = opened(path, open)
  const handle = handleOf(database)
  try {
    // FULL and fullfsync: a commit that was answered survives a power cut, also on macOS. busy_timeout 0 from then on: SQLite
    // would wait by blocking the whole process; we wait in `untilFree`.
    handle.exec(
      `PRAGMA busy_timeout = ${openWaitMs}; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;
      PRAGMA checkpoint_fullfsync = ON; PRAGMA busy_timeout = 0`,
    )
  } catch (cause) {
    handle.close()
    if (!isBusy(cause)) throw cause
    throw unavailable(
      `the SQLite file ${path} could not be opened: another process held its lock for ${openWaitMs} ms`,
      cause,
    )
  }
  return handle
}

function opened(path: string, open: (path: string) => SqliteDatabase): SqliteDatabase {
  try {
    const database = open(path)
    if (isDatabase(database)) return database
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new LatchkeyError('misconfigured', `the SQLite file ${path} cannot be opened: ${reason}`, { cause })
  }
  throw misconfigured('sqliteStore: open must give a handle with exec, prepare and close, such as new Database(path)')
}

/** Refuses what could not work, before the first request finds out. */
export function checkPath(path: string): string {
  if (typeof path !== 'string' || path === '' || path.includes(':memory:') || path.includes('mode=memory')) {
    throw misconfigured(
      `sqliteStore: path must be a file (got ${JSON.stringify(path)}): every handle on :memory: has a database of its own`,
    )
  }
  if (path.startsWith('file:')) {
    throw misconfigured(`sqliteStore: path must be a plain path, not a URI (got ${path})`)
  }
  const file = resolve(path)
  const directory = dirname(file)
  if (!existsSync(directory) || !statSync(directory).isDirectory()) {
    throw misconfigured(`sqliteStore: the directory ${directory} does not exist: create it, or choose another path`)
  }
  // The directory too: SQLite keeps its write-ahead log beside the file.
  for (const needed of existsSync(file) ? [directory, file] : [directory]) checkWritable(needed)
  return file
}

function checkWritable(needed: string): void {
  try {
    accessSync(needed, constants.W_OK)
  } catch (cause) {
    const message = `sqliteStore: ${needed} cannot be written: SQLite needs the file and its directory writable`
    throw new LatchkeyError('misconfigured', message, { cause })
  }
}

/** Only in this mode do readers continue while another connection writes. It stays with the file, and is cheap to ask for again. */
export function useWriteAheadLog(handle: Handle, path: string): void {
  const mode = handle.query('PRAGMA journal_mode = WAL')[0]?.journal_mode
  if (mode === 'wal') return
  throw misconfigured(
    `the SQLite file ${path} stays in journal mode ${String(mode)}: Latchkey needs WAL, which this driver or file system lacks`,
  )
}

/** Runs it again while another connection holds the lock, without blocking the process. Nothing has happened if it rejects. */
export async function untilFree<T>(clock: Clock, limitMs: number, run: () => T): Promise<T> {
  const deadlineMs = clock.monotonicMs() + limitMs
  for (let tries = 0; ; tries += 1) {
    try {
      return run()
    } catch (cause) {
      if (!isBusy(cause) || isStaleSnapshot(cause)) throw cause
      const leftMs = deadlineMs - clock.monotonicMs()
      if (leftMs <= 0) {
        throw unavailable(
          `nothing was written: the SQLite file was locked by others for ${Math.round(limitMs)} ms`,
          cause,
        )
      }
      const delayMs = Math.min(retryDelayMaxMs, 2 ** Math.min(tries, 10)) * (0.5 + clock.random() / 2)
      await sleep(clock, Math.min(delayMs, leftMs))
    }
  }
}
