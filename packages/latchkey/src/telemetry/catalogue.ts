/**
 * Every metric that Latchkey exports. Both exporters read this, and so does the table in docs/observe: a metric that the engine counts and
 * that is missing here does not compile.
 *
 * A name carries its unit and, of a counter, `count`: so the exporter of OpenTelemetry for Prometheus, a collector and prom-client all
 * arrive at one name, and one set of alerts fits all of them.
 */
import type { Metric } from '../ports/telemetry.ts'

/** What the engine counts and observes, and what is made of it here. */
export type ExportedMetric = Metric | 'duplicates.by_scope'

export interface MetricEntry {
  /** As OpenTelemetry names it. */
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  /** In the notation of UCUM, as OpenTelemetry has it. */
  readonly unit: string
  readonly help: string
  /** It has a label for the operation. */
  readonly byOperation: boolean
  /** The label for what the engine calls the detail. Undefined: the detail is left out. */
  readonly detail: string | undefined
  /** Of a histogram: the upper limits, in its unit. */
  readonly buckets: readonly number[]
  /** From what the engine observes to the unit. */
  readonly factor: number
}

type Labels = Partial<Pick<MetricEntry, 'byOperation' | 'detail'>>

const prefix = 'api.idempotency.'
const ofOperation: Labels = { byOperation: true }
const perStore: Labels = { detail: 'store' }

/** A commit takes a millisecond, a payment provider seconds, an export minutes. */
const executionSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** Up to the longest that a store lets its callers wait. */
const waitSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
/** A third is the first heartbeat; past 1 the lease has run out. */
const leaseRatios = [0.01, 0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 1, 1.5, 2]
/** Up to the largest batch of each store, 250 and 256. */
const batchSizes = [1, 2, 4, 8, 16, 32, 64, 128, 256]

export const catalogue: Readonly<Record<ExportedMetric, MetricEntry>> = {
  'reserve.created': counter('reserve.created', 'New keys.', ofOperation),
  'reserve.replay': counter('reserve.replay', 'Duplicates that were answered from the stored outcome.', ofOperation),
  'reserve.in_progress': counter('reserve.in_progress', 'Duplicates that met a running request.', ofOperation),
  'reserve.key_misuse': counter('reserve.key_misuse', 'Keys that were used again for another request.', ofOperation),
  'reserve.failed_retry': counter('reserve.failed_retry', 'Keys that were tried again after a failure.', ofOperation),
  'reserve.unknown': counter('reserve.unknown', 'Requests that found their outcome unknown.', ofOperation),
  'reserve.after_expiry': counter('reserve.after_expiry', 'Keys that came again after their retention.', ofOperation),
  'store.error': counter('store.error', 'Calls of the store that failed or took too long.', { detail: 'call' }),
  zombie_key: counter('zombie_key', 'Leases that ended without a word of their owner.', {
    ...ofOperation,
    detail: 'to',
  }),
  ttl_pruned: counter('ttl_pruned', 'Rows that were deleted after their retention.', { detail: 'table' }),
  takeover: counter('takeover', 'Rows that were taken over from a dead owner and run again.', ofOperation),
  claim_lost: counter('claim_lost', 'Owners that found their row taken over when they wrote its end.', ofOperation),
  'outcome.store_failed': counter(
    'outcome.store_failed',
    'Outcomes that were sent before they were stored.',
    ofOperation,
  ),
  parked: counter('parked', 'Rows and messages that stopped until a person acts.', {
    ...ofOperation,
    detail: 'detail',
  }),
  unprotected: counter('unprotected', 'Requests that ran without a claim.', ofOperation),
  'limit.refused': counter('limit.refused', 'Requests over a limit of their scope.', {
    ...ofOperation,
    detail: 'limit',
  }),
  'limit.unshared': counter('limit.unshared', 'Leases of shared limits that the store did not answer.', {}),
  'reconcile.scheduled': counter('reconcile.scheduled', 'Look-ups that were begun.', ofOperation),
  'reconcile.resolved': counter('reconcile.resolved', 'Unknown rows that evidence settled.', {
    ...ofOperation,
    detail: 'source',
  }),
  'reconcile.failed': counter('reconcile.failed', 'Look-ups, webhooks and comparisons that failed.', {
    ...ofOperation,
    detail: 'reason',
  }),
  'reconcile.refused': counter('reconcile.refused', 'Webhooks that were refused or belong to no row.', {
    detail: 'reason',
  }),
  'unknown.count': gauge('unknown.count', 'Rows whose outcome is unknown now.', { unit: '{row}', ...ofOperation }),
  'unknown.oldest_age': gauge('unknown.oldest_age', 'How long the oldest of them is.', { unit: 's', ...ofOperation }),
  'unknown.without_lookup': gauge('unknown.without_lookup', 'Those that no look-up is registered for.', {
    unit: '{row}',
    ...ofOperation,
  }),
  'ledger.missing': gauge('ledger.missing', 'Entries that the last comparison missed here.', ofLedger('{entry}')),
  'ledger.extra': gauge('ledger.extra', 'Entries that the last comparison found here only.', ofLedger('{entry}')),
  'ledger.different': gauge('ledger.different', 'Entries that differed in the last comparison.', ofLedger('{entry}')),
  'ledger.last_run_age': gauge('ledger.last_run_age', 'How long ago a comparison ended.', ofLedger('s')),
  'parked.rows': gauge('parked.rows', 'Rows that are parked now, up to 200.', { unit: '{row}' }),
  'outbox.oldest_age': gauge('outbox.oldest_age', 'The age of the oldest message that waits.', { unit: 's' }),
  'outbox.waiting': gauge('outbox.waiting', 'Messages that wait, up to 100,000.', { unit: '{message}' }),
  'outbox.held_back': gauge('outbox.held_back', 'Those that an open transaction holds back.', { unit: '{message}' }),
  'outbox.parked': gauge('outbox.parked', 'Messages that are parked now.', { unit: '{message}' }),
  'inbox.parked': gauge(
    'inbox.parked',
    'Messages that consumers have parked and that wait for a person, up to 100,000.',
    {
      unit: '{message}',
    },
  ),
  'circuit.open': gauge('circuit.open', '1 while calls of the store are refused because it failed.', {
    unit: '',
    ...perStore,
  }),
  'duplicates.by_scope': gauge(
    'duplicates.by_scope',
    'Duplicates of the 100 scopes with the most, since each entered the list.',
    { unit: '{request}' },
  ),
  'worker.turn': counter('worker.turn', 'Turns of a worker that ended.', { detail: 'worker' }),
  'worker.failure': counter('worker.failure', 'Those that failed.', { detail: 'worker' }),
  lock_timeout: counter('lock_timeout', 'Batches that gave up waiting for the lock of a row.', perStore),
  'store.failover': counter(
    'store.failover',
    'Servers of the store that were replaced, or started again: of Redis, which may have lost what was acknowledged last.',
    perStore,
  ),
  'execution.duration': seconds('execution.duration', 'From the claim to the end of the handler.', {
    buckets: executionSeconds,
    ...ofOperation,
  }),
  'lease.used_ratio': histogram('lease.used_ratio', 'How much of its lease a claim had used when it ended.', {
    unit: '1',
    buckets: leaseRatios,
    ...ofOperation,
  }),
  'batch.size': histogram('batch.size', 'Calls that share one commit.', {
    unit: '{call}',
    buckets: batchSizes,
    ...perStore,
  }),
  'batch.wait': seconds('batch.wait', 'How long the first call of a batch waited for it to leave.', {
    buckets: waitSeconds,
    ...perStore,
  }),
  'pool.wait': seconds('pool.wait', 'How long a batch or a transaction waited for its connection or its turn.', {
    buckets: waitSeconds,
    ...perStore,
  }),
}

/** The labels of `duplicates.by_scope`. */
export const scopeLabel = 'scope'
export const duplicateLabel = 'kind'

/** In Prometheus, by whichever way it gets there. */
export function prometheusName({ name, kind }: Pick<MetricEntry, 'name' | 'kind'>): string {
  const plain = name.replaceAll('.', '_')
  return kind === 'counter' ? `${plain}_total` : plain
}

function counter(name: string, help: string, labels: Labels): MetricEntry {
  return { ...entry(`${name}.count`, help, labels), kind: 'counter', unit: '{event}' }
}

function gauge(name: string, help: string, { unit, ...labels }: Labels & { readonly unit: string }): MetricEntry {
  const plain = entry(unit === 's' ? `${name}.seconds` : name, help, labels)
  return { ...plain, kind: 'gauge', unit, factor: unit === 's' ? 0.001 : 1 }
}

type HistogramParts = Labels & { readonly unit: string; readonly buckets: readonly number[] }

function histogram(name: string, help: string, { unit, buckets, ...labels }: HistogramParts): MetricEntry {
  return { ...entry(name, help, labels), kind: 'histogram', unit, buckets }
}

/** The engine observes milliseconds. */
function seconds(name: string, help: string, parts: Omit<HistogramParts, 'unit'>): MetricEntry {
  return { ...histogram(`${name}.seconds`, help, { unit: 's', ...parts }), factor: 0.001 }
}

function ofLedger(unit: string): Labels & { readonly unit: string } {
  return { unit, detail: 'ledger' }
}

function entry(name: string, help: string, { byOperation = false, detail }: Labels): MetricEntry {
  return { name: prefix + name, help, byOperation, detail, kind: 'gauge', unit: '', buckets: [], factor: 1 }
}
