/** The cases that a store, an outbox or an adapter must pass, as data, for any test runner. */
export type { BusinessTable, Damage, SpoilableHarness, SpoilCase, StoreCase, StoreHarness } from './store-harness.ts'
export { runStoreCases, runUnreadableCases, storeCases, type TestFunction } from './store.ts'
export type { StoreSelection } from './store-selection.ts'
export { unreadableCases } from './store/keys/unreadable.ts'
export { outboxCases, runOutboxCases, type OutboxNeed } from './outbox.ts'
export type { OutboxCase } from './outbox/fixture.ts'
export { adapterCases, runAdapterCases } from './adapter.ts'
export { AppError } from './adapter-harness.ts'
export type {
  AdapterCase,
  AdapterHarness,
  AppSpec,
  AdapterNeed,
  PhasedRouteSpec,
  HandlerReply,
  RouteSpec,
  RunningApp,
  StatusRouteSpec,
  TransactionalHarness,
  HandlerInput,
} from './adapter-harness.ts'
