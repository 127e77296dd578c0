/** What the queue is narrowed to. It is part of the address, so that it can be sent to a colleague. */
import type { WorkGroups } from 'latchkey/admin'
import { ChoiceField, TextField } from '../parts/field.tsx'
import { hrefOf, replaceRoute, type Route } from '../parts/route.ts'
import { useSession } from '../parts/session.ts'

export interface Filters {
  readonly operation: string
  readonly scope: string
  readonly mine: boolean
  readonly olderThanMs: string
}

const ages = [
  ['', 'any'],
  ['600000', '10 minutes'],
  ['3600000', '1 hour'],
  ['86400000', '1 day'],
] as const

export function filtersOf({ query }: Route): Filters {
  return {
    operation: query.get('operation') ?? '',
    scope: query.get('scope') ?? '',
    mine: query.get('mine') === '1',
    olderThanMs: query.get('older') ?? '',
  }
}

interface FilterBarProps {
  readonly route: Route
  readonly groups: WorkGroups['groups']
}

export function FilterBar({ route, groups }: FilterBarProps) {
  const filters = filtersOf(route)
  const { name } = useSession()
  const operations = [...new Set([...groups.map(({ operation }) => operation), filters.operation])].filter(Boolean)
  function set(changed: Partial<Filters>): void {
    const { operation, scope, mine, olderThanMs } = { ...filters, ...changed }
    replaceRoute(hrefOf(route.screen, '', { operation, scope, mine: mine ? '1' : undefined, older: olderThanMs }))
  }
  return (
    <form class="filters" onSubmit={event => event.preventDefault()}>
      <ChoiceField
        label="Operation"
        value={filters.operation}
        onValue={operation => set({ operation })}
        options={[['', 'all'], ...operations.map(each => [each, each] as const)]}
      />
      <TextField label="Scope" value={filters.scope} onValue={scope => set({ scope })} />
      <ChoiceField
        label="Older than"
        value={filters.olderThanMs}
        onValue={olderThanMs => set({ olderThanMs })}
        options={ages}
      />
      <label class="check">
        <input type="checkbox" checked={filters.mine} onChange={event => set({ mine: event.currentTarget.checked })} />{' '}
        Mine ({name})
      </label>
    </form>
  )
}
