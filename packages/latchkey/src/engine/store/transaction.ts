/** A transaction of the store, with limits on its beginning and its end, not on the handler between them. */
import { isLatchkeyError, LatchkeyError } from '../../ports/errors.ts'
import type { AtomicRequest, TransactionEnd, Transactor } from '../../ports/store.ts'
import type { Core } from '../runtime.ts'
import { within } from './call.ts'

export type BoundedEnd =
  | TransactionEnd
  | { readonly kind: 'unavailable'; readonly cause: unknown }
  /** The store has too many open transactions. Nothing ran, and that is not a fault of the store. */
  | { readonly kind: 'overloaded'; readonly cause: unknown }
  /** The work itself threw, and was rolled back. */
  | { readonly kind: 'raised'; readonly error: unknown }

/** The store's first and last call in the transaction. The handler's time is between them. */
export interface Edges {
  first<T>(call: () => Promise<T>): Promise<T>
  last<T>(call: () => Promise<T>): Promise<T>
}

/** For a transaction of the caller's, which the engine does not bound. */
export const unbounded: Edges = { first: call => call(), last: call => call() }

/**
 * A pool that gives no connection, or a server that does not answer the first call, for this long is as good as down; the same
 * limit bounds the last call and the COMMIT together.
 */
const edgeLimitMs = 5_000

export async function boundedTransaction<Tx>(
  core: Core<Tx>,
  transactor: Transactor<Tx>,
  work: (tx: Tx, edges: Edges) => Promise<'commit' | 'rollback'>,
  first?: AtomicRequest,
): Promise<BoundedEnd> {
  const { clock, calls, telemetry } = core
  const began = signalled()
  const worked = signalled()
  let abandoned = false
  let begun = false
  let over = false
  let said: 'commit' | 'rollback' | undefined
  let raised: { readonly error: unknown } | undefined

  const edges: Edges = {
    async first(call) {
      const value = await call()
      // The caller was answered while we queued or waited for the server: there is no caller left to run for.
      if (abandoned) throw new LatchkeyError('store-unavailable', 'the caller was answered before the reservation')
      begun = true
      began.resolve()
      return value
    },
    last(call) {
      worked.resolve()
      return call()
    },
  }
  const transaction = transactor.transaction(async tx => {
    if (abandoned) return 'rollback'
    try {
      const wish = await work(tx, edges)
      said = abandoned ? 'rollback' : wish
      return said
    } catch (error) {
      raised = { error }
      throw error
    } finally {
      worked.resolve()
    }
  }, first)
  const ended = transaction.then(
    () => void (over = true),
    () => void (over = true),
  )

  try {
    await within(clock, edgeLimitMs, () => Promise.race([began.promise, ended]))
    await Promise.race([worked.promise, ended])
    const end = await within(clock, edgeLimitMs, () => transaction)
    calls.circuit.succeeded()
    return end
  } catch (cause) {
    abandoned = true
    if (begun && raised !== undefined && raised.error === cause) return { kind: 'raised', error: cause }
    if (!begun && isLatchkeyError(cause, 'overloaded')) return { kind: 'overloaded', cause }
    // Between its beginning and its end a transaction fails because of what the handler did in it: the store may be fine.
    // An overloaded process proves nothing about its store.
    if ((!begun || !over) && !isLatchkeyError(cause, 'overloaded')) {
      calls.circuit.failed(cause)
      telemetry.count('store.error', { detail: 'transaction' })
    }
    telemetry.report('a transaction of the store failed', { error: cause })
    // Only a COMMIT under way leaves a doubt; anything else rolls back by itself.
    const inDoubt = said === 'commit' && cause instanceof LatchkeyError
    return inDoubt ? { kind: 'commit-unknown', cause } : { kind: 'unavailable', cause }
  }
}

function signalled(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>(settle => {
    resolve = settle
  })
  return { promise, resolve }
}
