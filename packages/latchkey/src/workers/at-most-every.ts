import type { Clock } from '../ports/clock.ts'

/** Half of an exporter's usual minute: a gauge that costs a query is read no more often. */
const everyMs = 30_000

/** Calls it unless it was called within the last half minute. */
export function atMostEvery(
  { clock }: { readonly clock: Pick<Clock, 'monotonicMs'> },
  observe: () => Promise<void>,
): () => Promise<void> {
  let dueAtMs = Number.NEGATIVE_INFINITY
  return async () => {
    if (clock.monotonicMs() < dueAtMs) return
    dueAtMs = clock.monotonicMs() + everyMs
    await observe()
  }
}
