/** Who did what? */
import { useState } from 'preact/hooks'
import type { AuditLineOfOperators, Page } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { apiAddress, pathWith } from '../api/request.ts'
import { TextField } from '../parts/field.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf, replaceRoute, type Route } from '../parts/route.ts'
import { Moment } from '../parts/time.tsx'

const heads = ['when', 'who', 'act', 'row', 'from → to', 'reason', 'evidence', 'through']

export function Audit({ route }: { route: Route }) {
  const who = route.query.get('who') ?? ''
  const id = route.query.get('id') ?? ''
  const [older, setOlder] = useState<readonly string[]>([])
  const page = usePoll<Page<AuditLineOfOperators>>(
    pathWith('audit', { who, identity: id, cursor: older.at(-1), limit: 100 }),
    {
      everyMs: 5_000,
    },
  )
  function filter(changed: { who?: string; id?: string }): void {
    setOlder([])
    replaceRoute(hrefOf('audit', '', { who, id, ...changed }))
  }
  const items = page.value?.items
  return (
    <>
      <h1 tabIndex={-1}>Audit</h1>
      <form class="filters" onSubmit={event => event.preventDefault()}>
        <TextField label="Who" value={who} onValue={value => filter({ who: value })} />
        <TextField label="Row" hint="its whole id" value={id} onValue={value => filter({ id: value })} />
        <a
          class="button"
          href={apiAddress(pathWith('audit.ndjson', { who, identity: id }))}
          download="latchkey-audit.ndjson"
        >
          Export NDJSON
        </a>
      </form>
      <ProblemNote problem={page.problem} />
      {items?.length === 0 && page.value?.next !== undefined && (
        <p class="note">None of these entries is about a scope that you may see. Older ones may be.</p>
      )}
      {items?.length === 0 && page.value?.next === undefined && (
        <div class="empty">
          <p>
            <strong>No entry.</strong> Every act of an operator is written here in the commit of the act, also those
            that were refused. {emptyText(who, id)}
          </p>
        </div>
      )}
      {items !== undefined && items.length > 0 && <Lines items={items} />}
      <p class="bar">
        {older.length > 0 && (
          <button type="button" onClick={() => setOlder(older.slice(0, -1))}>
            Newer
          </button>
        )}
        {page.value?.next !== undefined && (
          <button type="button" onClick={() => setOlder([...older, page.value?.next ?? ''])}>
            Older
          </button>
        )}
      </p>
    </>
  )
}

function emptyText(who: string, id: string): string {
  return who === '' && id === '' ? 'There are no acts yet that you may see.' : 'Nothing matches this filter.'
}

function Lines({ items }: { items: readonly AuditLineOfOperators[] }) {
  return (
    <div class="scroll" role="region" aria-label="Audit" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {heads.map(head => (
              <th scope="col" key={head}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map(line => (
            <tr key={line.auditId} class={line.refused === undefined ? '' : 'refused'}>
              <td>
                <Moment atMs={line.atMs} />
              </td>
              <td>{line.by}</td>
              <td>
                {line.act}
                {line.refused !== undefined && <strong> refused: {line.refused}</strong>}
              </td>
              <td>
                {line.id === undefined ? (
                  line.detail
                ) : (
                  <a data-row href={hrefOf('key', line.id)}>
                    {line.id.slice(0, 8)}
                  </a>
                )}
              </td>
              <td>{line.from === undefined ? '–' : `${line.from} → ${line.to ?? line.from}`}</td>
              <td class="long">{line.reason}</td>
              <td class="long">{line.evidence ?? '–'}</td>
              <td>{line.source ?? '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
