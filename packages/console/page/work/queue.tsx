/** The queue of unknown outcomes, and the queue of what was given up: grouped by cause, acted on row by row or by a plan. */
import { useEffect, useState } from 'preact/hooks'
import type { BulkGiven, Overview, WorkGroups } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { Life } from '../parts/life.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import type { Route } from '../parts/route.ts'
import { useSession } from '../parts/session.ts'
import type { QueueKind } from './columns.tsx'
import { FilterBar, filtersOf } from './filters.tsx'
import { Group, type GroupAct, GroupRows } from './group.tsx'
import { ImportDialog } from './import-dialog.tsx'
import { LastAnswer } from './last-answer.tsx'
import { PlanDialog } from './plan-dialog.tsx'
import { useSelection } from './selection.ts'

interface QueueProps {
  readonly kind: QueueKind
  readonly route: Route
  readonly overview: Overview | undefined
  readonly overviewAtMs: number
}

type Planned = Pick<BulkGiven, 'ids' | 'filter'> & { readonly act: GroupAct }

const titles = { unknown: 'Unknown outcomes', parked: 'Parked' } as const

export function Queue({ kind, route, overview, overviewAtMs }: QueueProps) {
  const groups = usePoll<WorkGroups>(`work/groups?kind=${kind}`, { everyMs: 2_000 })
  const { name, lacks } = useSession()
  const { ids, selection, clear } = useSelection()
  const [toggled, setToggled] = useState<Readonly<Record<string, boolean>>>({})
  const [plan, setPlan] = useState<Planned>()
  const [isImporting, setIsImporting] = useState(false)
  const { operation, scope, mine, olderThanMs } = filtersOf(route)
  const narrowed = {
    ...(scope === '' ? {} : { scope }),
    ...(mine ? { owner: name } : {}),
    ...(olderThanMs === '' ? {} : { olderThanMs: Number(olderThanMs) }),
  }
  const found = groups.value?.groups.filter(group => operation === '' || group.operation === operation) ?? []
  // Nobody acts on rows that a filter hides.
  useEffect(clear, [operation, scope, mine, olderThanMs])
  /** What was selected by hand stays selected where nothing was done with it. */
  function close(isStarted: boolean): void {
    setPlan(undefined)
    setIsImporting(false)
    if (isStarted) clear()
    groups.refresh()
  }
  return (
    <>
      <h1 tabIndex={-1}>{titles[kind]}</h1>
      <FilterBar route={route} groups={groups.value?.groups ?? []} />
      <ProblemNote problem={groups.problem} />
      {lacks('admin') && (
        <GroupRows
          kind={kind}
          name={titles[kind]}
          filter={{ kind, operation, ...rowFilter(narrowed) }}
          selection={selection}
        />
      )}
      {groups.value?.partial === true && <p class="note">Partial: there may be more than were counted in time.</p>}
      {groups.value?.partial === false && found.length === 0 && (
        <Empty kind={kind} operation={operation} overview={overview} readAtMs={overviewAtMs} />
      )}
      {found.map((group, at) => {
        const key = `${group.operation} ${group.cause ?? ''}`
        return (
          <Group
            key={key}
            kind={kind}
            group={group}
            filter={rowQuery(kind, group, narrowed)}
            isOpen={toggled[key] ?? at === 0}
            readAtMs={groups.readAtMs}
            selection={selection}
            onToggle={isOpen => setToggled(before => ({ ...before, [key]: isOpen }))}
            onPlan={act => setPlan({ act, filter: { kind, ...causeOf(group), ...narrowed } })}
          />
        )
      })}
      <SelectionBar
        kind={kind}
        count={ids.size}
        onPlan={act => setPlan({ act, ids: [...ids] })}
        onImport={() => setIsImporting(true)}
        onClear={clear}
      />
      {plan !== undefined && <PlanDialog given={plan} onClose={close} />}
      {isImporting && <ImportDialog onClose={close} />}
    </>
  )
}

type WorkGroup = WorkGroups['groups'][number]

function causeOf({ operation, cause }: WorkGroup) {
  return { operation, ...(cause === undefined ? {} : { cause }) }
}

interface Narrowed {
  readonly scope?: string
  readonly owner?: string
  readonly olderThanMs?: number
}

function rowQuery(kind: QueueKind, group: WorkGroup, narrowed: Narrowed) {
  return { kind, ...causeOf(group), ...rowFilter(narrowed) }
}

function rowFilter({ scope, owner, olderThanMs }: Narrowed) {
  return { scope, owner, older_than: olderThanMs }
}

interface EmptyProps {
  readonly kind: QueueKind
  readonly operation: string
  readonly overview: Overview | undefined
  readonly readAtMs: number
}

function Empty({ kind, operation, overview, readAtMs }: EmptyProps) {
  const nothing = kind === 'unknown' ? 'No unknown outcomes' : 'Nothing is parked'
  return (
    <div class="empty">
      <p>
        <strong>{operation === '' ? nothing : `${nothing} of ${operation}`}.</strong>{' '}
        <Life overview={overview} readAtMs={readAtMs} loops={kind === 'unknown' ? ['reconciler'] : ['resumer']} />
      </p>
      {kind === 'unknown' && <LastAnswer />}
    </div>
  )
}

interface SelectionBarProps {
  readonly kind: QueueKind
  readonly count: number
  onPlan(act: GroupAct): void
  onImport(): void
  onClear(): void
}

function SelectionBar({ kind, count, onPlan, onImport, onClear }: SelectionBarProps) {
  const { may, lacks } = useSession()
  const acts = [
    ['take', 'Take…'],
    kind === 'unknown' ? ['look_up', 'Look up now…'] : ['resume', 'Resume…'],
  ] as const satisfies readonly (readonly [GroupAct, string])[]
  if (!may('bulk') || lacks('admin')) return null
  return (
    <div class="bar sticky" role="toolbar" aria-label="Selected rows">
      <span>
        {count} selected{count > 0 && ', updates paused'}
      </span>
      {acts
        .filter(([act]) => may(act))
        .map(([act, text]) => (
          <button
            key={act}
            type="button"
            disabled={count === 0}
            onClick={() => onPlan(act)}
            {...(act === 'take' ? { 'data-key': 't' } : {})}
          >
            {text}
          </button>
        ))}
      {count > 0 && (
        <button type="button" class="quiet" onClick={onClear}>
          Clear
        </button>
      )}
      {kind === 'unknown' && (
        <button type="button" data-key="i" onClick={onImport}>
          Import provider export…
        </button>
      )}
    </div>
  )
}
