/** What a reconciler uses of its Latchkey, and what its parts share. */
import type { Clock } from '../ports/clock.ts'
import { isLatchkeyError, LatchkeyError, misconfigured } from '../ports/errors.ts'
import type { EvidenceSource, Ledgers, Reconciliation } from '../ports/reconciliation.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { engine } from '../engine/internal.ts'
import type { Internals } from '../engine/latchkey.ts'
import type { Retention } from '../engine/operator.ts'
import { within } from '../engine/store/call.ts'

/** A Latchkey, as far as its reconciler needs it. */
export interface ReconcilerHost<Tx> {
  readonly [engine]: Pick<Internals<Tx>, 'store' | 'clock' | 'telemetry' | 'closing' | 'retentionOf' | 'kinds'>
}

/** Evidence moved a row. `kept`: the evidence was stored before the row could be settled. */
export interface Settled {
  readonly id: string | undefined
  readonly operation: string
  readonly to: 'completed' | 'failed_retryable' | 'pending'
  readonly source: EvidenceSource | 'kept'
}

export interface ReconcilerContext {
  readonly store: Pick<Store, 'read' | 'inspect' | 'steps'> & { readonly reconciliation: Reconciliation }
  /** Throws where the store has none: no ledger can be declared there. */
  ledgers(): Ledgers
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Aborted when the Latchkey closes: nothing new is started. */
  readonly closing: AbortSignal
  retentionOf(operation: string): Retention
  /** The registered value, or the default. */
  quarantineMs(operation: string): number
  /** Calls the store with a time limit. Rejects with `store-unavailable`. */
  call<T>(name: string, run: () => Promise<T>): Promise<T>
  settled(what: Settled): void
}

/** Ten minutes: longer than a request lives in any proxy, queue or retrying client library between us and a provider. */
export const quarantineDefaultMs = 600_000

/** Longer than the engine waits for a store: no client's request waits here, only the sender of a webhook. */
const storeCallMs = 5_000

export interface ContextOptions {
  quarantineMs(operation: string): number
  settled(what: Settled): void
}

export function reconcilerContext<Tx>(latchkey: ReconcilerHost<Tx>, options: ContextOptions): ReconcilerContext {
  const { store, clock, telemetry, closing, retentionOf } = latchkey[engine]
  const { reconciliation, ledgers } = store
  if (reconciliation === undefined) throw missing(store.name, 'reconciliation')
  return {
    store: { read: id => store.read(id), inspect: id => store.inspect(id), steps: store.steps, reconciliation },
    ledgers() {
      if (ledgers === undefined) throw missing(store.name, 'ledgers')
      return ledgers
    },
    clock,
    telemetry,
    closing,
    retentionOf,
    ...options,
    async call(name, run) {
      try {
        return await within(clock, storeCallMs, run)
      } catch (cause) {
        // A full queue in this process says nothing about the store.
        if (!isLatchkeyError(cause, 'overloaded')) telemetry.count('store.error', { detail: name })
        const message = `the ${store.name} store failed at ${name}: ${String(cause)}`
        throw new LatchkeyError('store-unavailable', message, { cause })
      }
    },
  }
}

function missing(store: string, faculty: 'reconciliation' | 'ledgers'): LatchkeyError {
  const instead = faculty === 'ledgers' ? 'Use look-ups and webhooks' : 'Settle what is unknown as an operator'
  return misconfigured(
    `the ${store} store has no ${faculty} (traits.faculties). ${instead}, or use a store that has them, such as postgresStore`,
  )
}
