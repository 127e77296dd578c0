/** Cases a store has to pass, as data, for any test runner. */
export type { BusinessTable, StoreCase, StoreHarness } from './store-harness.ts'
export { runStoreCases, storeCases, type StoreNeed, type TestFunction } from './store.ts'
export { adapterCases, runAdapterCases } from './adapter.ts'
export type {
  AdapterCase,
  AdapterHarness,
  AppSpec,
  Need,
  Reply,
  RouteSpec,
  RunningApp,
  TransactionalHarness,
  Visit,
} from './adapter-harness.ts'
