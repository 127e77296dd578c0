/** The rows of a group as a table, of which only those near the window are drawn. */
import { useMemo, useRef } from 'preact/hooks'
import type { AdminRow } from 'latchkey/admin'
import { hrefOf } from '../parts/route.ts'
import { Age } from '../parts/time.tsx'
import { columns, type QueueKind } from './columns.tsx'
import { blockRows } from './drawn-range.ts'
import type { Selection } from './selection.ts'
import { useDrawnRange } from './use-drawn-range.ts'

interface RowTableProps {
  readonly kind: QueueKind
  readonly name: string
  readonly rows: readonly AdminRow[]
  readonly readAtMs: number
  readonly selection: Selection
}

export function RowTable({ kind, name, rows, readAtMs, selection }: RowTableProps) {
  const body = useRef<HTMLTableSectionElement>(null)
  const { first, last, abovePx, belowPx } = useDrawnRange(rows.length, body)
  const from = first * blockRows
  return (
    <div class="scroll" role="region" aria-label={name} tabIndex={0}>
      <table class="rows" aria-rowcount={rows.length + 1}>
        <caption class="hidden">{name}</caption>
        <Head kind={kind} rows={rows} selection={selection} />
        <tbody ref={body}>
          <Gap heightPx={abovePx} />
          {rows.slice(from, (last + 1) * blockRows).map((row, at) => (
            <Row
              key={row.id}
              kind={kind}
              row={row}
              place={from + at + 1}
              readAtMs={readAtMs}
              isSelected={selection.has(row.id)}
              selection={selection}
            />
          ))}
          <Gap heightPx={belowPx} />
        </tbody>
      </table>
    </div>
  )
}

function Head({ kind, rows, selection }: Pick<RowTableProps, 'kind' | 'rows' | 'selection'>) {
  const isAll = rows.length > 0 && rows.every(({ id }) => selection.has(id))
  return (
    <thead>
      <tr aria-rowindex={1}>
        <th scope="col" class="box">
          <input
            type="checkbox"
            aria-label="Select all shown rows"
            checked={isAll}
            onChange={event => selection.set(rows, event.currentTarget.checked)}
          />
        </th>
        <th scope="col" class="short">
          row
        </th>
        <th scope="col" class="short">
          age
        </th>
        {columns[kind].map(({ head }) => (
          <th scope="col" key={head}>
            {head}
          </th>
        ))}
      </tr>
    </thead>
  )
}

/** As high as the rows that are not drawn there. */
function Gap({ heightPx }: { heightPx: number }) {
  if (heightPx === 0) return null
  return (
    <tr aria-hidden="true" class="gap">
      <td style={{ height: `${heightPx}px` }} />
    </tr>
  )
}

interface RowProps {
  readonly kind: QueueKind
  readonly row: AdminRow
  /** Its place in the whole list, from 1. */
  readonly place: number
  readonly readAtMs: number
  readonly isSelected: boolean
  readonly selection: Selection
}

function Row({ kind, row, place, readAtMs, isSelected, selection }: RowProps) {
  const { waitsForMs: _waits, nextLookUpInMs: _next, quarantineLeftMs: _left, leaseLeftMs: _lease, ...lasting } = row
  // Ages and due times are written by a timer: a row whose other fields are the same is not drawn again.
  const fixed = `${JSON.stringify(lasting)} ${isSelected} ${place} ${isLeft(row.nextLookUpInMs)} ${isLeft(row.quarantineLeftMs)}`
  return useMemo(
    () => (
      <tr aria-rowindex={place + 1}>
        <td>
          <input
            type="checkbox"
            aria-label={`Select ${row.id.slice(0, 8)}`}
            checked={isSelected}
            onChange={event => selection.set([row], event.currentTarget.checked)}
          />
        </td>
        <td>
          <a data-row href={hrefOf('key', row.id)}>
            {row.id.slice(0, 8)}
          </a>
        </td>
        <td>
          <Age ageMs={row.waitsForMs ?? 0} readAtMs={readAtMs} />
        </td>
        {columns[kind].map(({ head, cell }) => (
          <td key={head}>{cell(row, readAtMs)}</td>
        ))}
      </tr>
    ),
    [fixed],
  )
}

function isLeft(ms: number | undefined): boolean {
  return ms !== undefined && ms > 0
}
