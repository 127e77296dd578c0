/** What the exporters have in common: which cell an event goes to, the list of scopes, and where reports go. */
import { consoleTelemetry } from '../ports/console-telemetry.ts'
import type { Attributes, Metric, Telemetry } from '../ports/telemetry.ts'
import { catalogue, duplicateLabel, type MetricEntry, scopeLabel } from './catalogue.ts'
import { type Labels, type LabelSets, labelSets } from './label-sets.ts'
import { type ScopeDuplicates, topScopes } from './top-scopes.ts'

export interface ExportedTelemetry extends Telemetry {
  /**
   * The 100 scopes with the most duplicates in this process: replays, requests that met a running one, and keys used again for another
   * request. Those with the most first.
   */
  duplicatesByScope(): readonly ScopeDuplicates[]
}

/** One set of labels of a metric: an event arrives, in the unit of the catalogue. */
export interface Cell {
  add(value: number): void
}

/** A gauge, with what it shows when it is read. */
export interface GaugeSource {
  readonly entry: MetricEntry
  read(show: (value: number, labels: Labels) => void): void
}

/** How an exporter makes what the catalogue lists. */
export interface Exporter {
  counter(entry: MetricEntry): (labels: Labels) => Cell
  histogram(entry: MetricEntry): (labels: Labels) => Cell
  gauge(source: GaugeSource): void
}

class GaugeCell implements Cell {
  value = 0
  readonly labels: Labels

  constructor(labels: Labels) {
    this.labels = labels
  }

  add(value: number): void {
    this.value = value
  }
}

export function exportedTelemetry(exporter: Exporter): ExportedTelemetry {
  const scopes = topScopes()
  const cells = new Map<string, LabelSets<Cell>>()
  const operations = new Set<string>()

  /** A counter that appears with its first event shows no increase: those of an operation begin at zero with its first request. */
  function onOperation(operation: string): void {
    if (operations.has(operation)) return
    operations.add(operation)
    for (const [metric, { kind, byOperation, detail }] of Object.entries(catalogue)) {
      if (kind === 'counter' && byOperation && detail === undefined) cells.get(metric)?.of({ operation }).add(0)
    }
  }

  for (const [metric, entry] of Object.entries(catalogue)) {
    if (metric === 'duplicates.by_scope') exporter.gauge({ entry, read: show => showScopes(scopes.list(), show) })
    else cells.set(metric, labelSets(entry, { make: makerOf(exporter, entry), onOperation }))
  }

  function tell(metric: Metric, value: number, attributes: Attributes): void {
    const { factor } = catalogue[metric]
    cells
      .get(metric)
      ?.of(attributes)
      .add(value * factor)
  }

  return {
    count(metric, attributes) {
      tell(metric, 1, attributes)
      scopes.count(metric, attributes)
    },
    observe: tell,
    report: consoleTelemetry().report,
    duplicatesByScope: scopes.list,
  }
}

function makerOf(exporter: Exporter, entry: MetricEntry): (labels: Labels) => Cell {
  if (entry.kind === 'counter') return exporter.counter(entry)
  if (entry.kind === 'histogram') return exporter.histogram(entry)
  const shown: GaugeCell[] = []
  exporter.gauge({
    entry,
    read(show) {
      for (const { value, labels } of shown) show(value, labels)
    },
  })
  return labels => {
    const cell = new GaugeCell(labels)
    shown.push(cell)
    return cell
  }
}

function showScopes(list: readonly ScopeDuplicates[], show: (value: number, labels: Labels) => void): void {
  for (const { scope, replays, inProgress, misuse } of list) {
    const counts = { replay: replays, in_progress: inProgress, key_misuse: misuse }
    for (const [kind, count] of Object.entries(counts)) show(count, { [scopeLabel]: scope, [duplicateLabel]: kind })
  }
}
