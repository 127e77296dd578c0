/** Rows with one cause: opened, they can be read, selected, and acted on together. */
import type { WorkGroups } from 'latchkey/admin'
import { ProblemNote } from '../parts/problem.tsx'
import { useSession } from '../parts/session.ts'
import { Age } from '../parts/time.tsx'
import type { Query } from '../api/request.ts'
import type { QueueKind } from './columns.tsx'
import { RowTable } from './row-table.tsx'
import type { Selection } from './selection.ts'
import { useRows } from './use-rows.ts'

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

/** Also of a store that knows no groups. */
export function GroupRows({ kind, name, filter, selection }: GroupRowsProps) {
  const rows = useRows(filter, 2_000)
  return (
    <>
      <ProblemNote problem={rows.problem} />
      <RowTable kind={kind} name={name} rows={rows.shown} readAtMs={rows.readAtMs} selection={selection} />
      <p class="bar">
        {rows.isRead && rows.shown.length === 0 && (
          <span>{rows.isPartial ? 'No row was found in time.' : 'No row matches the filter.'}</span>
        )}
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
