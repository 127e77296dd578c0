/** Whether a store can carry an operation, asked when it is declared. Each error names what the store lacks, the trait that says so, and the way out. */
import { type LatchkeyError, misconfigured } from '../../ports/errors.ts'
import type { Phases, Steps } from '../../ports/steps.ts'
import type { OperationKind, Store, Transactor } from '../../ports/store.ts'

export interface Declaration {
  readonly name: string
  readonly kind: OperationKind
  /** `effects`: it has no phases. */
  readonly steps?: 'effects' | undefined
}

export function checkCarried<Tx>(store: Store<Tx>, declaration: Declaration): void {
  const { name, kind, steps } = declaration
  if (kind === 'atomic') transactorOf(store, name)
  if (kind === 'phased' || kind === 'deferred') {
    stepsOf(store, name)
    if (steps !== 'effects') phasesOf(store, name)
  }
  if (store.traits.kinds.includes(kind)) return
  throw misconfigured(
    `${name}: the ${store.name} store does not carry ${kind} operations (traits.kinds). Use ${kindsOf(store)}, or postgresStore`,
  )
}

export function transactorOf<Tx>(store: Store<Tx>, name: string): Transactor<Tx> {
  if (store.transactor !== undefined) return store.transactor
  throw misconfigured(
    `${name}: ${withoutTransactions(store)}, so nothing can commit with your rows. Use ${kindsOf(store)}, or postgresStore`,
  )
}

export function stepsOf<Tx>(store: Store<Tx>, name: string): Steps {
  if (store.steps !== undefined) return store.steps
  throw misconfigured(
    `${name}: the ${store.name} store has no steps (traits.faculties), so nothing could be resumed or run later. Use ${kindsOf(store)}, or postgresStore`,
  )
}

export function phasesOf<Tx>(
  store: Store<Tx>,
  name: string,
): { readonly transactor: Transactor<Tx>; readonly phases: Phases<Tx> } {
  const { transactor, phases } = store
  if (transactor !== undefined && phases !== undefined) return { transactor, phases }
  const lack =
    transactor === undefined ? withoutTransactions(store) : `the ${store.name} store has no phases (traits.faculties)`
  throw misconfigured(
    `${name}: ${lack}, so no phase could commit with its writes. Declare it with steps: 'effects', or use postgresStore`,
  )
}

/** `what`: the call that needs it. */
export function outboxMissing<Tx>(store: Pick<Store<Tx>, 'name'>, what: string): LatchkeyError {
  return misconfigured(
    `${what}: the ${store.name} store has no outbox (traits.faculties), because messages commit with a transaction. Use postgresStore, or an effect that sends the message`,
  )
}

function withoutTransactions<Tx>({ name }: Store<Tx>): string {
  return `the ${name} store has no transactions (traits.transactional)`
}

function kindsOf<Tx>({ traits }: Store<Tx>): string {
  return new Intl.ListFormat('en', { type: 'disjunction' }).format(traits.kinds)
}
