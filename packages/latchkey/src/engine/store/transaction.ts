/** A transaction of the store, with limits on its beginning and its end, not on the handler between them. */
import { isLatchkeyError, LatchkeyError } from '../../ports/errors.ts'
import type { AtomicRequest, TransactionEnd, Transactor } from '../../ports/store.ts'
import type { Core } from '../runtime.ts'

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

export function boundedTransaction<Tx>(
  core: Core<Tx>,
  transactor: Transactor<Tx>,
  work: (tx: Tx, edges: Edges) => Promise<'commit' | 'rollback'>,
  first?: AtomicRequest,
): Promise<BoundedEnd> {
  return new Promise(resolve => {
    const { clock, calls } = core
    const run: Run = { abandoned: false, begun: false, over: false, said: undefined, raised: undefined }
    const fail = (cause: unknown) => {
      run.abandoned = true
      resolve(failedEnd(core, run, cause))
    }
    const late = () => fail(new LatchkeyError('store-unavailable', `no answer within ${edgeLimitMs} ms`))
    // One limit at a time: the first until the reservation is answered, none while the handler runs, the second from its end on.
    let cancel = clock.after(edgeLimitMs, late)
    let isEnding = false
    const limitEnd = () => {
      if (!run.begun || isEnding) return
      isEnding = true
      cancel = clock.after(edgeLimitMs, late)
    }
    const edges: Edges = {
      async first(call) {
        const value = await call()
        // The caller was answered while we queued or waited for the server: there is no caller left to run for.
        if (run.abandoned)
          throw new LatchkeyError('store-unavailable', 'the caller was answered before the reservation')
        run.begun = true
        cancel()
        return value
      },
      last(call) {
        limitEnd()
        return call()
      },
    }
    const inside = async (tx: Tx) => {
      if (run.abandoned) return 'rollback'
      try {
        const wish = await work(tx, edges)
        run.said = run.abandoned ? 'rollback' : wish
        return run.said
      } catch (error) {
        run.raised = { error }
        throw error
      } finally {
        limitEnd()
      }
    }
    const over = () => {
      run.over = true
      cancel()
    }
    transactor.transaction(inside, first).then(
      ended => {
        over()
        if (run.abandoned) return
        calls.circuit.succeeded()
        resolve(ended)
      },
      (cause: unknown) => {
        over()
        if (!run.abandoned) fail(cause)
      },
    )
  })
}

/** What is known of a transaction while it is open. */
interface Run {
  /** Its caller was answered. */
  abandoned: boolean
  /** The first call was answered. */
  begun: boolean
  over: boolean
  said: 'commit' | 'rollback' | undefined
  raised: { readonly error: unknown } | undefined
}

function failedEnd<Tx>({ calls, telemetry }: Core<Tx>, run: Run, cause: unknown): BoundedEnd {
  const { begun, over, said, raised } = run
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
