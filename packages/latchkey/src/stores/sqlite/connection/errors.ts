/** What an error of the driver means to us. */
import { isLatchkeyError, LatchkeyError } from '../../../ports/errors.ts'
import type { StoreFault } from '../../../ports/store.ts'
import type { SchemaFault } from '../migrations/index.ts'

// SQLite's primary result codes. PROTOCOL is a lost race for the write-ahead log's locks, and as harmless as BUSY.
const busyCode = 5
const protocolCode = 15
const snapshotCode = 517

/** Another connection holds the lock: nothing happened, try again. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error)
  return code !== undefined && (code % 256 === busyCode || code % 256 === protocolCode)
}

/** This transaction read before another one committed, so it can never write: trying again in it is useless. */
export function isStaleSnapshot(error: unknown): boolean {
  return resultCode(error) === snapshotCode
}

/** `rawCode`: libsql; `errcode`: node:sqlite; better-sqlite3 has only the name in `code`. */
function resultCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  for (const name of ['rawCode', 'errcode']) {
    const code: unknown = Reflect.get(error, name)
    if (typeof code === 'number') return code
  }
  const name: unknown = Reflect.get(error, 'code')
  if (name === 'SQLITE_BUSY_SNAPSHOT') return snapshotCode
  if (typeof name === 'string' && name.startsWith('SQLITE_BUSY')) return busyCode
  return name === 'SQLITE_PROTOCOL' ? protocolCode : undefined
}

export function asStoreError(error: unknown, path: string): LatchkeyError {
  if (isLatchkeyError(error)) return error
  const reason = error instanceof Error ? error.message : String(error)
  if (reason.includes('no such table: latchkey_')) return notMigrated(path, error)
  return new LatchkeyError('store-unavailable', `the SQLite file ${path} failed: ${reason}`, { cause: error })
}

function notMigrated(path: string, cause?: unknown): LatchkeyError {
  return new LatchkeyError('store-not-migrated', faultOf({ kind: 'absent' }, path).message, { cause })
}

/** What is wrong with the tables, and the cure. */
export function faultOf(fault: SchemaFault, path: string): StoreFault {
  if (fault.kind === 'absent' || fault.kind === 'older') {
    const message = `the SQLite file ${path} lacks Latchkey's tables, or has older ones: call store.migrate() first`
    return { kind: 'not-migrated', message }
  }
  const named = fault.step === undefined ? 'no step' : `step ${fault.step.version}, "${fault.step.name}"`
  if (fault.kind === 'foreign') {
    const message = `the SQLite file ${path} has tables named latchkey_… that Latchkey did not make (${named}): give it another file`
    return { kind: 'foreign', message }
  }
  const message = `a newer release of Latchkey has migrated the SQLite file ${path} (${named}), and processes of this release cannot share it: run the newer release here as well, or give this one another file`
  return { kind: 'newer', message }
}

export function faultError({ kind, message }: StoreFault): LatchkeyError {
  return new LatchkeyError(`store-${kind}`, message)
}

/** The process has more to write than it may queue. Nothing of it was written, and nothing is wrong with the file. */
export function overloaded(message: string): LatchkeyError {
  return new LatchkeyError('overloaded', message, { retryAfterMs: 1_000 })
}

export function unavailable(message: string, cause?: unknown): LatchkeyError {
  return new LatchkeyError('store-unavailable', message, { cause })
}
