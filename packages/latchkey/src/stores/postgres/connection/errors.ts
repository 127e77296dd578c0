/** What an error of the driver means for us. Query builders wrap errors, so causes are followed. */
import { isLatchkeyError, LatchkeyError } from '../../../ports/errors.ts'

/** An error the server itself sent. Errors of the driver and of the socket have no severity. */
export interface ServerError {
  readonly code: string
  readonly severity: string
  readonly schema?: string
  /** What postgres.js calls it. */
  readonly schema_name?: string
}

const causesMax = 8

/** Five characters; unlike the codes of sockets, such as EPIPE, every one has a digit. */
const sqlState = /^(?=.*\d)[0-9A-Z]{5}$/

interface WrappedError {
  readonly cause?: unknown
  /** Of Prisma. */
  readonly meta?: { readonly driverAdapterError?: unknown }
  readonly originalCode?: unknown
}

export function serverErrorOf(error: unknown): ServerError | undefined {
  let current = error
  for (let depth = 0; depth < causesMax && typeof current === 'object' && current !== null; depth += 1) {
    if (isServerError(current)) return current
    const { cause, meta, originalCode } = current as WrappedError
    // Prisma's adapter replaces the error, and leaves the code of those that it knows.
    if (typeof originalCode === 'string' && sqlState.test(originalCode))
      return { code: originalCode, severity: 'ERROR' }
    current = cause ?? meta?.driverAdapterError
  }
  return undefined
}

function isServerError(value: object): value is ServerError {
  return 'code' in value && typeof value.code === 'string' && 'severity' in value && typeof value.severity === 'string'
}

const serializationFailure = '40001'
const deadlock = '40P01'
const duplicateKey = '23505'

/** Rolled back by the server because another transaction won: repeating from the start is safe and makes sense. */
export function isLostRace(error: unknown): boolean {
  const code = serverErrorOf(error)?.code
  return code === serializationFailure || code === deadlock
}

/** A duplicate key counts in our own tables only: one in the application's tables is the application's answer. */
export function isConflict(error: unknown, schema: string): boolean {
  const cause = serverErrorOf(error)
  return isLostRace(error) || (cause?.code === duplicateKey && (cause.schema ?? cause.schema_name) === schema)
}

/** At COMMIT only a deferred constraint can still report a duplicate: another transaction won it, in whichever table. */
export function isConflictAtCommit(error: unknown): boolean {
  return isLostRace(error) || serverErrorOf(error)?.code === duplicateKey
}

/**
 * The server answered and refused, so it is known that nothing was committed. Not known: connection exceptions (08), a
 * server or administrator that ended the session (57P), failures of the system below it (58), and all without an answer.
 */
export function isDefiniteRefusal(error: unknown): boolean {
  const code = serverErrorOf(error)?.code
  return code !== undefined && !/^(08|57P|58|XX)/.test(code)
}

/**
 * Refused for what one of its rows is or does, or because another transaction is writing it: bad values and limits, constraints, conflicts
 * between transactions, a wait that was too long; or for the name of a statement. Never because the server is unwell: then every row would fail alike.
 */
export function isRefusalOfRows(error: unknown): boolean {
  const code = serverErrorOf(error)?.code
  return code !== undefined && /^(2[1236]|40|42P05|54|55P03)/.test(code)
}

/** This session has lost the name, or has it from other code. Known before anything of the statement ran. */
export function isUnknownStatement(error: unknown): boolean {
  const code = serverErrorOf(error)?.code
  return code === '26000' || code === '42P05'
}

export const isDenied = (error: unknown): boolean => serverErrorOf(error)?.code === '42501'

export const isLockTimeout = (error: unknown): boolean => serverErrorOf(error)?.code === '55P03'

/** Outside a transaction block, or in one that an earlier error has already ended. */
export const isOutsideTransaction = (error: unknown): boolean => serverErrorOf(error)?.code === '25P01'
export const isFailedTransaction = (error: unknown): boolean => serverErrorOf(error)?.code === '25P02'

const missing: ReadonlySet<string> = new Set(['42P01', '3F000', '42703', '42883'])

/** Every error of our own statements leaves this store in this shape. */
export function storeError(error: unknown, schema: string): LatchkeyError {
  if (isLatchkeyError(error)) return error
  if (missing.has(serverErrorOf(error)?.code ?? '')) {
    return new LatchkeyError(
      'store-not-migrated',
      `the tables of Latchkey are missing or too old in schema ${schema}: call \`await store.migrate()\` at start, or run the statements of postgresMigrations() with your own tool (${messageOf(error)})`,
      { cause: error },
    )
  }
  if (isFailedTransaction(error)) {
    return new LatchkeyError(
      'store-unavailable',
      `an earlier statement of this transaction failed, and PostgreSQL rejects all others: put a savepoint around what may fail (${messageOf(error)})`,
      { cause: error },
    )
  }
  return new LatchkeyError('store-unavailable', `PostgreSQL failed: ${messageOf(error)}`, { cause: error })
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
