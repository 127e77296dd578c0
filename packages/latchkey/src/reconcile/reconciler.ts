/** Finding out what nobody can know: by asking, by being told, by comparing the books. */
import { misconfigured } from '../ports/errors.ts'
import { engine } from '../engine/internal.ts'
import type { GuardedOperation, PhasedRunRequest } from '../engine/operation.ts'
import { checkedLedger, type LedgerOptions, type LedgerReport, type NamedLedger, underWay } from './ledgers/compare.ts'
import { beginComparison } from './ledgers/run.ts'
import { partsOf, quarantineDefaultMs, type ReconcilerHost, type Settled } from './host.ts'
import {
  checkedRegistration,
  type GuardedRegistration,
  type PhasedRegistration,
  type Registered,
} from './registration.ts'
import { webhookHandler, type WebhookHandler, type WebhookOptions } from './webhooks/handler.ts'
import { type ReconcilerWork, reconcilerWork } from './turns.ts'

/** A phased or deferred operation, as far as it is asked about. */
export interface EffectfulOperation<Input> {
  readonly kind: 'phased' | 'deferred'
  readonly name: string
  run(request: PhasedRunRequest<Input>): Promise<unknown>
}

export interface Reconciler {
  /** How the provider of an operation is asked what became of it. Once for each operation, before the workers start. */
  register<Input>(operation: EffectfulOperation<Input>, registration: PhasedRegistration<Input>): void
  register(operation: Pick<GuardedOperation<never>, 'kind' | 'name'>, registration: GuardedRegistration): void
  /** A fetch handler for the provider's webhooks. Forged, stale, malformed and replayed ones change nothing and get 400. */
  webhook<Event = unknown>(options: WebhookOptions<Event>): WebhookHandler
  /** Two ledgers to compare, in one pass and bounded memory. */
  ledger<Ours, Theirs>(name: string, options: LedgerOptions<Ours, Theirs>): void
  /** Compares now. Rejects with `in-progress` while another process does, and with what made it fail. */
  compare(name: string): Promise<LedgerReport>
  /** Called after evidence moved a row, in this process. Returns what ends it. */
  onSettled(listener: (settled: Settled) => void): () => void
  readonly [engine]: { work(options: { readonly concurrency: number }): ReconcilerWork }
}

export function createReconciler<Tx>(latchkey: ReconcilerHost<Tx>): Reconciler {
  if (typeof latchkey?.[engine]?.store?.reconciliation?.keep !== 'function') {
    throw misconfigured('createReconciler needs a Latchkey: createReconciler(latchkey)')
  }
  const registered = new Map<string, Registered>()
  const ledgers = new Map<string, NamedLedger>()
  const webhooks = new Set<string>()
  const listeners = new Set<(settled: Settled) => void>()
  const parts = partsOf(latchkey, {
    quarantineMs: operation => registered.get(operation)?.quarantineMs ?? quarantineDefaultMs,
    settled(what) {
      for (const listener of listeners) listener(what)
    },
  })

  return {
    register(operation: { readonly name: string }, given: GuardedRegistration | PhasedRegistration<never>) {
      const name = operation?.name
      if (registered.has(name)) {
        throw misconfigured(
          `register: ${name} is registered already. One look-up answers for all versions of an operation`,
        )
      }
      registered.set(name, checkedRegistration({ name, kind: latchkey[engine].kinds.get(name), given: given ?? {} }))
    },
    webhook(options) {
      const handler = webhookHandler(parts, options)
      if (webhooks.has(options.name)) {
        throw misconfigured(`webhook: ${options.name} is there already: messages are remembered by this name`)
      }
      webhooks.add(options.name)
      return handler
    },
    ledger(name, options) {
      if (ledgers.has(name)) throw misconfigured(`ledger: ${name} is there already. Give each comparison its own name`)
      // Its functions are called with what its own iterables gave.
      ledgers.set(name, checkedLedger(name, options as unknown as LedgerOptions<never, never>))
    },
    async compare(name) {
      const ledger = ledgers.get(name)
      if (ledger === undefined)
        throw misconfigured(`compare: there is no ledger ${name}: declare it with ledger(name, …)`)
      const begun = await beginComparison(parts, { ledger, everyMs: 0, ending: parts.closing })
      if (begun.kind === 'not-due') throw underWay(name, begun.inMs)
      return begun.report
    },
    onSettled(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    [engine]: { work: ({ concurrency }) => reconcilerWork(parts, { concurrency, registered, ledgers }) },
  }
}
