/** Cases a store has to pass, as data, for any test runner. */
export type { BusinessTable, StoreCase, StoreHarness } from './store-harness.ts'
export { runStoreCases, storeCases, type StoreNeed, type TestFunction } from './store.ts'
export { outboxCases, runOutboxCases, type OutboxNeed } from './outbox.ts'
export type { OutboxCase } from './outbox/bench.ts'
export { adapterCases, runAdapterCases } from './adapter.ts'
export type {
  AdapterCase,
  AdapterHarness,
  AppSpec,
  Need,
  PhasedRouteSpec,
  Reply,
  RouteSpec,
  RunningApp,
  StatusRouteSpec,
  TransactionalHarness,
  Visit,
} from './adapter-harness.ts'
