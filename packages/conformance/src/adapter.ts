/**
 * The adapter conformance suite, as data. An adapter passes it over real sockets:
 * `runAdapterCases(harness, it)`.
 */
import { atomicCases } from './adapter/atomic.ts'
import { bodyCases } from './adapter/bodies.ts'
import { bodyLimitCases } from './adapter/body-limit.ts'
import { captureCases } from './adapter/capture.ts'
import { concurrencyCases } from './adapter/concurrency.ts'
import { defaultHeaderCases } from './adapter/default-headers.ts'
import { deferredCases } from './adapter/deferred.ts'
import { failureCases } from './adapter/failures.ts'
import type { AdapterCase, AdapterHarness } from './adapter-harness.ts'
import { errorHandlerCases } from './adapter/error-handlers.ts'
import { headerCases } from './adapter/headers.ts'
import { keyCases } from './adapter/keys.ts'
import { keySourceCases } from './adapter/key-sources.ts'
import { phasedCases } from './adapter/phased.ts'
import { streamCases } from './adapter/streams.ts'
import type { TestFunction } from './store.ts'

export const adapterCases: readonly AdapterCase[] = [
  ...bodyCases,
  ...bodyLimitCases,
  ...captureCases,
  ...streamCases,
  ...headerCases,
  ...defaultHeaderCases,
  ...keyCases,
  ...keySourceCases,
  ...concurrencyCases,
  ...failureCases,
  ...errorHandlerCases,
  ...atomicCases,
  ...phasedCases,
  ...deferredCases,
]

/** Registers every case whose needs the harness provides. */
export function runAdapterCases(harness: AdapterHarness, test: TestFunction): void {
  for (const { name, needs = [], run } of adapterCases) {
    if (needs.every(need => harness.provides.has(need))) test(name, () => run(harness))
  }
}
