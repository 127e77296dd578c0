/** Rows with one cause: opened, they can be read, selected, and acted on together. */
import { useMemo } from 'preact/hooks'
import type { AdminRow, WorkGroups } from 'latchkey/admin'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf } from '../parts/route.ts'
import { useSession } from '../parts/session.ts'
import { Age } from '../parts/time.tsx'
import type { Query } from '../api/request.ts'
import { columns, type QueueKind } from './columns.tsx'
import { useRows } from './use-rows.ts'

export interface Selection {
  has(id: string): boolean
  set(rows: readonly AdminRow[], isSelected: boolean): void
}

export type GroupAct = 'take' | 'look_up' | 'resume'

interface GroupProps {
  readonly kind: QueueKind
  readonly group: WorkGroups['groups'][number]
  readonly filter: Query
  readonly isOpen: boolean
  readonly readAtMs: number
  readonly selection: Selection
  onToggle(isOpen: boolean): void
  onPlan(act: GroupAct): void
}

export function Group({ kind, group, filter, isOpen, readAtMs, selection, onToggle, onPlan }: GroupProps) {
  const { may } = useSession()
  const cause = group.cause ?? 'cause not recorded'
  return (
    <details class="group" open={isOpen} onToggle={event => onToggle(event.currentTarget.open)}>
      <summary>
        <strong>{group.operation}</strong> · {cause} · {group.count} {group.count === 1 ? 'row' : 'rows'}, oldest{' '}
        <Age ageMs={group.oldestMs} readAtMs={readAtMs} />
      </summary>
      {isOpen && (
        <>
          <div class="bar">
            {kind === 'unknown' && may('look_up') && (
              <button type="button" data-key="l" onClick={() => onPlan('look_up')}>
                Look up all…
              </button>
            )}
            {kind === 'parked' && may('resume') && (
              <button type="button" data-key="r" onClick={() => onPlan('resume')}>
                Resume all…
              </button>
            )}
            {may('take') && (
              <button type="button" onClick={() => onPlan('take')}>
                Take all…
              </button>
            )}
          </div>
          <GroupRows kind={kind} name={`${group.operation}, ${cause}`} filter={filter} selection={selection} />
        </>
      )}
    </details>
  )
}

interface GroupRowsProps extends Pick<GroupProps, 'kind' | 'filter' | 'selection'> {
  readonly name: string
}

function GroupRows({ kind, name, filter, selection }: GroupRowsProps) {
  const rows = useRows(filter, 2_000)
  const isAll = rows.shown.length > 0 && rows.shown.every(({ id }) => selection.has(id))
  return (
    <>
      <ProblemNote problem={rows.problem} />
      <div class="scroll" role="region" aria-label={name} tabIndex={0}>
        <table>
          <caption class="hidden">{name}</caption>
          <thead>
            <tr>
              <th scope="col">
                <input
                  type="checkbox"
                  aria-label="Select all shown rows"
                  checked={isAll}
                  onChange={event => selection.set(rows.shown, event.currentTarget.checked)}
                />
              </th>
              <th scope="col">row</th>
              <th scope="col">age</th>
              {columns[kind].map(({ head }) => (
                <th scope="col" key={head}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.shown.map(row => (
              <Row
                key={row.id}
                kind={kind}
                row={row}
                readAtMs={rows.readAtMs}
                isSelected={selection.has(row.id)}
                selection={selection}
              />
            ))}
          </tbody>
        </table>
      </div>
      <p class="bar">
        {rows.isRead && rows.shown.length === 0 && <span>No row of this group matches the filter.</span>}
        {rows.isPartial && <span class="note">Partial: the time for the list was over. Narrow the filter.</span>}
        {rows.fresh > 0 && (
          <button type="button" onClick={rows.showFresh}>
            {rows.fresh} new, show
          </button>
        )}
        {rows.hasMore && (
          <button type="button" onClick={rows.showMore}>
            Show more
          </button>
        )}
      </p>
    </>
  )
}

interface RowProps {
  readonly kind: QueueKind
  readonly row: AdminRow
  readonly readAtMs: number
  readonly isSelected: boolean
  readonly selection: Selection
}

function Row({ kind, row, readAtMs, isSelected, selection }: RowProps) {
  const { waitsForMs: _waits, nextLookUpInMs: _next, quarantineLeftMs: _left, leaseLeftMs: _lease, ...lasting } = row
  // Ages and due times are written by a timer: a row whose other fields are the same is not drawn again.
  const fixed = `${JSON.stringify(lasting)} ${isSelected} ${isLeft(row.nextLookUpInMs)} ${isLeft(row.quarantineLeftMs)}`
  return useMemo(
    () => (
      <tr>
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
