/** What an exporter holds for each set of labels of a metric. It is made once, so that an observation builds no object and no text. */
import type { Attributes } from '../ports/telemetry.ts'
import type { MetricEntry } from './catalogue.ts'

export type Labels = Readonly<Record<string, string>>

export interface LabelSets<Cell> {
  of(attributes: Attributes): Cell
  all(): Iterable<Cell>
}

/**
 * Of one metric. Operations are declared and details are words of ours, so a process has a few dozen; the limit is for what is counted of
 * rows that others have written.
 */
const setsMax = 1_000
const other = 'other'

export interface LabelSetOptions<Cell> {
  readonly make: (labels: Labels) => Cell
  /** Called before the first set of an operation is made. */
  readonly onOperation?: (operation: string) => void
}

type Labelled = Pick<MetricEntry, 'byOperation' | 'detail'>

export function labelSets<Cell>(entry: Labelled, { make, onOperation }: LabelSetOptions<Cell>): LabelSets<Cell> {
  const cells = new Map<string, Map<string, Cell>>()
  let size = 0

  function add(operation: string, detail: string): Cell {
    if (size >= setsMax) return cells.get(other)?.get(other) ?? insert(other, other)
    if (operation !== '') onOperation?.(operation)
    // It may have been made meanwhile.
    return cells.get(operation)?.get(detail) ?? insert(operation, detail)
  }

  function insert(operation: string, detail: string): Cell {
    const ofOperation = cells.get(operation) ?? new Map<string, Cell>()
    const cell = make(labelsOf(entry, operation, detail))
    cells.set(operation, ofOperation.set(detail, cell))
    size += 1
    return cell
  }

  return {
    of(attributes) {
      const operation = (entry.byOperation && attributes.operation) || ''
      const detail = (entry.detail !== undefined && attributes.detail) || ''
      return cells.get(operation)?.get(detail) ?? add(operation, detail)
    },
    *all() {
      for (const ofOperation of cells.values()) yield* ofOperation.values()
    },
  }
}

/** Prometheus takes an empty label for none at all. */
function labelsOf({ byOperation, detail: name }: Labelled, operation: string, detail: string): Labels {
  return Object.freeze({
    ...(byOperation && operation !== '' ? { operation } : {}),
    ...(name !== undefined && detail !== '' ? { [name]: detail } : {}),
  })
}
