/** A metric as the registry of `prom-client` reads it, over numbers of our own: an observation is an addition, and hashes no labels. */
import { type MetricEntry, prometheusName } from '../catalogue.ts'
import type { Cell, GaugeSource } from '../exported.ts'
import type { Labels } from '../label-sets.ts'
import type { PrometheusMetric } from './driver.ts'

interface Sample {
  readonly metricName?: string
  readonly labels: Labels | Readonly<Record<string, string | number>>
  readonly value: number
}

interface NumberCell extends Cell {
  samples(): readonly Sample[]
  reset(): void
}

export interface CellMetric {
  readonly metric: PrometheusMetric
  readonly make: (labels: Labels) => Cell
}

export function cellMetric(entry: MetricEntry): CellMetric {
  const cells: NumberCell[] = []
  const name = prometheusName(entry)
  return {
    metric: metricOf(
      entry,
      () => cells.flatMap(cell => cell.samples()),
      () => {
        for (const cell of cells) cell.reset()
      },
    ),
    make(labels) {
      const cell = entry.kind === 'counter' ? new CounterCell(labels) : new HistogramCell(name, labels, entry.buckets)
      cells.push(cell)
      return cell
    },
  }
}

/** It shows what was last observed, so there is nothing to reset. */
export function gaugeMetric({ entry, read }: GaugeSource): PrometheusMetric {
  return metricOf(entry, () => {
    const samples: Sample[] = []
    read((value, labels) => void samples.push({ value, labels }))
    return samples
  })
}

function metricOf(entry: MetricEntry, samples: () => readonly Sample[], reset = () => {}): PrometheusMetric {
  const { help, kind } = entry
  // In a cluster of processes: each reads the same rows, and counts requests of its own.
  const aggregator = kind === 'gauge' ? 'max' : 'sum'
  const metric = {
    name: prometheusName(entry),
    type: kind,
    // In the format of OpenMetrics the registry has renamed it: a counter's values get their `_total` there.
    get: async () => ({ name: metric.name, help, type: kind, aggregator, values: samples() }),
    reset,
  }
  return metric
}

class CounterCell implements NumberCell {
  private value = 0
  private readonly labels: Labels

  constructor(labels: Labels) {
    this.labels = labels
  }

  add(value: number): void {
    this.value += value
  }

  samples(): readonly Sample[] {
    return [{ labels: this.labels, value: this.value }]
  }

  reset(): void {
    this.value = 0
  }
}

class HistogramCell implements NumberCell {
  private sum = 0
  private readonly name: string
  private readonly labels: Labels
  private readonly buckets: readonly number[]
  /** For each bucket what is above the one before; the last is for what is above all of them. */
  private readonly counts: number[]

  constructor(name: string, labels: Labels, buckets: readonly number[]) {
    this.name = name
    this.labels = labels
    this.buckets = buckets
    this.counts = Array.from({ length: buckets.length + 1 }, () => 0)
  }

  add(value: number): void {
    const { buckets, counts } = this
    let at = 0
    while (at < buckets.length && value > (buckets[at] ?? Infinity)) at += 1
    counts[at] = (counts[at] ?? 0) + 1
    this.sum += value
  }

  samples(): readonly Sample[] {
    const { name, labels } = this
    let total = 0
    const samples = this.counts.map((count, at): Sample => {
      total += count
      return { metricName: `${name}_bucket`, labels: { ...labels, le: this.buckets[at] ?? '+Inf' }, value: total }
    })
    return [
      ...samples,
      { metricName: `${name}_sum`, labels, value: this.sum },
      { metricName: `${name}_count`, labels, value: total },
    ]
  }

  reset(): void {
    this.counts.fill(0)
    this.sum = 0
  }
}
