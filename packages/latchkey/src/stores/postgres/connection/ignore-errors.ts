/**
 * A connection that breaks while no statement runs emits 'error', and without a listener that ends the process. The
 * next statement on it fails, which is where a broken connection is handled: so the event itself is ignored.
 */
import type { PgClient, PgPool } from '../driver.ts'

type ErrorSource = Pick<PgClient, 'on' | 'removeListener' | 'listeners'>

/** Several stores may share a pool. */
const covered = new WeakSet<PgPool>()

const ignore = () => {}
const nothing = () => {}

/**
 * For every connection of the pool, whichever code checks it out, as long as it lives. To listen after `await pool.connect()` is
 * too late: the pool removes its own listener as it hands a connection over, `await` continues in a later microtask, and the
 * server's last message may come in the same bytes as its last answer. 'acquire' is emitted before that listener is removed. For
 * connections that are idle or being closed, the pool emits 'error' itself.
 */
export function ignoreErrorsOfPool(pool: PgPool): void {
  if (pool.on === undefined || covered.has(pool)) return
  covered.add(pool)
  pool.on('error', ignore)
  pool.on('acquire', client => void ignoreErrors(client))
}

/**
 * Until the returned function is called. A connection has this listener once at most, however often it is checked out:
 * one that its pool's 'acquire' has covered stays so.
 */
export function ignoreErrors(client: ErrorSource): () => void {
  if (client.listeners?.('error').includes(ignore)) return nothing
  client.on('error', ignore)
  return () => client.removeListener('error', ignore)
}

/**
 * Of a connection that the caller hands in, from now on: there is no sign of when its transaction has ended. A query
 * builder's transaction shows no connection; its pool covers it, if a store has that pool.
 */
export function ignoreErrorsOfCaller(tx: unknown): void {
  if (isEmitter(tx)) ignoreErrors(tx)
}

/** Without `listeners`, a wrapper of a connection would get one more at every transaction. */
function isEmitter(tx: unknown): tx is ErrorSource {
  if (typeof tx !== 'object' || tx === null || !('on' in tx) || !('listeners' in tx)) return false
  return typeof tx.on === 'function' && typeof tx.listeners === 'function'
}
