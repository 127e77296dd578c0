/** What all of reconciliation shares. */
import type { Clock } from '../ports/clock.ts'
import { isLatchkeyError, LatchkeyError } from '../ports/errors.ts'
import type { EvidenceSource } from '../ports/reconciliation.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { engine } from '../engine/internal.ts'
import type { Internals } from '../engine/latchkey.ts'
import { within } from '../engine/store/call.ts'

/** A Latchkey, as far as its reconciler needs it. */
export interface ReconcilerHost<Tx> {
  readonly [engine]: Pick<Internals<Tx>, 'store' | 'clock' | 'telemetry' | 'closing' | 'retentionOf' | 'kinds'>
}

/** Evidence moved a row. `kept`: evidence that had come before the row could be settled. */
export interface Settled {
  readonly id: string | undefined
  readonly operation: string
  readonly to: 'completed' | 'failed_retryable' | 'pending'
  readonly source: EvidenceSource | 'kept'
}

export interface Parts {
  readonly store: Pick<Store, 'read' | 'inspect' | 'reconciliation' | 'steps'>
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Aborted when the Latchkey closes: nothing new is begun. */
  readonly closing: AbortSignal
  keeping(operation: string): { readonly retentionMs: number; readonly outcomeVersion: number }
  /** As registered, or the default. */
  quarantineMs(operation: string): number
  /** Bounded in time. Rejects with `store-unavailable`. */
  call<T>(name: string, run: () => Promise<T>): Promise<T>
  settled(what: Settled): void
}

/** Ten minutes: longer than a request lives in any proxy, queue or retrying client library between us and a provider. */
export const quarantineDefaultMs = 600_000

/** Longer than the engine waits for a store: nobody's request waits here, except a webhook's sender. */
const storeCallMs = 5_000

export interface PartsOptions {
  quarantineMs(operation: string): number
  settled(what: Settled): void
}

export function partsOf<Tx>(latchkey: ReconcilerHost<Tx>, options: PartsOptions): Parts {
  const { store, clock, telemetry, closing, retentionOf } = latchkey[engine]
  return {
    // A transaction is never handed through here, so its type does not matter.
    store: store as Store,
    clock,
    telemetry,
    closing,
    keeping: retentionOf,
    ...options,
    async call(name, run) {
      try {
        return await within(clock, storeCallMs, run)
      } catch (cause) {
        // A queue of this process that is full says nothing about the store.
        if (!isLatchkeyError(cause, 'overloaded')) telemetry.count('store.error', { detail: name })
        const message = `the ${store.name} store failed at ${name}: ${String(cause)}`
        throw new LatchkeyError('store-unavailable', message, { cause })
      }
    },
  }
}
