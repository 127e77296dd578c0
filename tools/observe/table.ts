/** The table of metrics in docs/observe, from the catalogue. */
import {
  catalogue,
  duplicateLabel,
  type MetricEntry,
  prometheusName,
  scopeLabel,
} from '../../packages/latchkey/src/telemetry/catalogue.ts'
import { textBetween, withTextBetween } from '../marked-text.ts'

const marks = { start: '<!-- metrics: written by `npm run observe` -->', end: '<!-- metrics: end -->' }

export function metricsTable(): string {
  const rows = Object.entries(catalogue).map(([metric, entry]) => rowOf(entry, labelsOf(metric, entry)))
  return ['| metric | kind | labels | what it is |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

export function shownTable(page: string): string {
  return textBetween(page, marks)
}

export function withMetricsTable(page: string): string {
  return withTextBetween(page, marks, metricsTable())
}

function rowOf(entry: MetricEntry, labels: readonly string[]): string {
  const shown = labels.map(label => `\`${label}\``).join(', ')
  return `| \`${prometheusName(entry)}\` | ${entry.kind} | ${shown} | ${entry.help} |`
}

function labelsOf(metric: string, { byOperation, detail }: MetricEntry): readonly string[] {
  if (metric === 'duplicates.by_scope') return [scopeLabel, duplicateLabel]
  return [...(byOperation ? ['operation'] : []), ...(detail === undefined ? [] : [detail])]
}
