/** A transaction of the store's, with limits on what is ours to wait for: its beginning and its end, not the handler. */
import { LatchkeyError } from '../ports/errors.ts'
import type { TransactionEnd, Transactor } from '../ports/store.ts'
import type { Core } from './core.ts'
import { within } from './store-calls.ts'

export type BoundedEnd = TransactionEnd | { readonly kind: 'unavailable'; readonly cause: unknown }

/** A pool that gives no connection for this long is as good as down; the same limit bounds the COMMIT. */
const edgeLimitMs = 5_000

export async function boundedTransaction<Tx>(
  core: Core<Tx>,
  transactor: Transactor<Tx>,
  work: (tx: Tx) => Promise<'commit' | 'rollback'>,
): Promise<BoundedEnd> {
  const { clock, calls, telemetry } = core
  let abandoned = false
  let said: 'commit' | 'rollback' | undefined
  const started = signalled()
  const worked = signalled()

  const transaction = transactor.transaction(async tx => {
    started.resolve()
    // The caller was answered while we queued for a connection: nobody is there to run for.
    if (abandoned) return 'rollback'
    try {
      said = await work(tx)
      return said
    } finally {
      worked.resolve()
    }
  })
  const over = transaction.then(
    () => {},
    () => {},
  )

  try {
    await within(clock, edgeLimitMs, () => Promise.race([started.promise, over]))
    await Promise.race([worked.promise, over])
    const end = await within(clock, edgeLimitMs, () => transaction)
    calls.circuit.succeeded()
    return end
  } catch (cause) {
    abandoned = true
    calls.circuit.failed()
    telemetry.count('store.error', { detail: 'transaction' })
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
