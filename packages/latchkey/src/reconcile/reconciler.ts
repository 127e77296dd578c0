/** Settles unknown outcomes: by look-ups, webhooks and ledger comparisons. */
import { misconfigured } from '../ports/errors.ts'
import { engine } from '../engine/internal.ts'
import type { GuardedOperation, PhasedRunRequest } from '../engine/operation.ts'
import { checkedLedger, type LedgerOptions, type LedgerReport, type NamedLedger, underWay } from './ledgers/compare.ts'
import { beginComparison } from './ledgers/run.ts'
import { reconcilerContext, quarantineDefaultMs, type ReconcilerHost, type Settled } from './host.ts'
import {
  checkedRegistration,
  type GuardedRegistration,
  type PhasedRegistration,
  type Registered,
} from './registration.ts'
import { webhookHandler, type WebhookHandler, type WebhookOptions } from './webhooks/handler.ts'
import { type ReconcilerWork, reconcilerWork } from './turns.ts'

/** The members of a phased or deferred operation that `register` uses. */
export interface EffectfulOperation<Input> {
  readonly kind: 'phased' | 'deferred'
  readonly name: string
  run(request: PhasedRunRequest<Input>): Promise<unknown>
}

export interface Reconciler {
  /** How to ask an operation's provider about an unknown outcome. Call it once for each operation, before the workers start. */
  register<Input>(operation: EffectfulOperation<Input>, registration: PhasedRegistration<Input>): void
  register(operation: Pick<GuardedOperation<never>, 'kind' | 'name'>, registration: GuardedRegistration): void
  /** A fetch handler for the provider's webhooks. Forged, stale, malformed and replayed messages change nothing and get 400. */
  webhook<Event = unknown>(options: WebhookOptions<Event>): WebhookHandler
  /** Declares two ledgers to compare, in one pass and bounded memory. */
  ledger<Ours, Theirs>(name: string, options: LedgerOptions<Ours, Theirs>): void
  /** Compares now. Rejects with `in-progress` while another comparison of this ledger runs, or with the error that ended this one. */
  compare(name: string): Promise<LedgerReport>
  /** The listener is called after evidence moved a row, in this process. Returns a function that removes it. */
  onSettled(listener: (settled: Settled) => void): () => void
  readonly [engine]: {
    work(options: { readonly concurrency: number }): ReconcilerWork
    /** By operation. */
    quarantines(): Readonly<Record<string, number>>
  }
}

export function createReconciler<Tx>(latchkey: ReconcilerHost<Tx>): Reconciler {
  if (typeof latchkey?.[engine]?.store?.claim !== 'function') {
    throw misconfigured('createReconciler needs a Latchkey: createReconciler(latchkey)')
  }
  const registered = new Map<string, Registered>()
  const ledgers = new Map<string, NamedLedger>()
  const webhooks = new Set<string>()
  const listeners = new Set<(settled: Settled) => void>()
  const context = reconcilerContext(latchkey, {
    quarantineMs: operation => registered.get(operation)?.quarantineMs ?? quarantineDefaultMs,
    settled(what) {
      for (const listener of listeners) listener(what)
    },
  })

  return {
    register(operation: { readonly name: string }, given: GuardedRegistration | PhasedRegistration<never>) {
      const name = operation?.name
      if (registered.has(name)) {
        throw misconfigured(`register: ${name} is already registered. One look-up serves all versions of an operation`)
      }
      registered.set(name, checkedRegistration({ name, kind: latchkey[engine].kinds.get(name), given: given ?? {} }))
    },
    webhook(options) {
      const handler = webhookHandler(context, options)
      if (webhooks.has(options.name)) {
        throw misconfigured(
          `webhook name "${options.name}" is already in use; names must be unique because deduplication is keyed by them`,
        )
      }
      webhooks.add(options.name)
      return handler
    },
    ledger(name, options) {
      if (ledgers.has(name))
        throw misconfigured(`ledger name "${name}" is already in use; give each comparison its own name`)
      context.ledgers()
      // Its functions are called only with entries of its own iterables.
      ledgers.set(name, checkedLedger(name, options as unknown as LedgerOptions<never, never>))
    },
    async compare(name) {
      const ledger = ledgers.get(name)
      if (ledger === undefined)
        throw misconfigured(`compare: ledger "${name}" is not declared; declare it with ledger(name, …)`)
      const begun = await beginComparison(context, { ledger, everyMs: 0, ending: context.closing })
      if (begun.kind === 'not-due') throw underWay(name, begun.inMs)
      return begun.report
    },
    onSettled(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    [engine]: {
      work: ({ concurrency }) => reconcilerWork(context, { concurrency, registered, ledgers }),
      quarantines: () => Object.fromEntries([...registered].map(([name, { quarantineMs }]) => [name, quarantineMs])),
    },
  }
}
