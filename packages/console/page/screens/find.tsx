/** Where is this customer's request? What is asked goes in a body: a key is no part of an address. */
import { useState } from 'preact/hooks'
import type { AdminRow } from 'latchkey/admin'
import { ask, type Problem } from '../api/request.ts'
import { announce } from '../parts/announce.tsx'
import { TextField } from '../parts/field.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { goTo, hrefOf } from '../parts/route.ts'
import { RowStates } from '../parts/state.tsx'
import { Moment } from '../parts/time.tsx'

const empty = { reference: '', scope: '', operation: '', key: '', id: '' }

type What =
  | { readonly reference: string }
  | { readonly id: string }
  | { readonly scope: string; readonly operation: string; readonly key: string }

export function Find() {
  const [form, setForm] = useState(empty)
  const [found, setFound] = useState<readonly AdminRow[]>()
  const [problem, setProblem] = useState<Problem>()
  const set = (name: keyof typeof empty) => (value: string) => setForm(before => ({ ...before, [name]: value }))
  const search = (what: What) => async (event: Event) => {
    event.preventDefault()
    const answer = await ask<readonly AdminRow[]>('keys/lookup', what)
    const isMissing = answer.kind === 'problem' && answer.problem.code === 'not-found'
    setProblem(answer.kind === 'problem' && !isMissing ? answer.problem : undefined)
    const rows = answer.kind === 'ok' ? answer.value : []
    const [only] = rows
    if (only !== undefined && rows.length === 1) return goTo(hrefOf('key', only.id))
    setFound(answer.kind === 'ok' || isMissing ? rows : undefined)
    announce(`${rows.length} found`)
  }
  return (
    <>
      <h1 tabIndex={-1}>Find</h1>
      <div class="columns">
        <form onSubmit={event => void search({ reference: form.reference })(event)}>
          <h2>By reference</h2>
          <p>An order number, or what the provider calls the payment, as the handler recorded it.</p>
          <TextField label="Reference" value={form.reference} onValue={set('reference')} isRequired hasFocus />
          <button type="submit">Find</button>
        </form>
        <form onSubmit={event => void search({ scope: form.scope, operation: form.operation, key: form.key })(event)}>
          <h2>By the client's key</h2>
          <p>Exactly as the client sent it. It is hashed and compared; it is not stored.</p>
          <TextField label="Scope" value={form.scope} onValue={set('scope')} isRequired />
          <TextField label="Operation" value={form.operation} onValue={set('operation')} isRequired />
          <TextField label="Key" value={form.key} onValue={set('key')} isRequired />
          <button type="submit">Find</button>
        </form>
        <form onSubmit={event => void search({ id: form.id.trim() })(event)}>
          <h2>By id</h2>
          <p>As in a log line, or in an address that a colleague sent.</p>
          <TextField label="Id of the row" value={form.id} onValue={set('id')} isRequired />
          <button type="submit">Find</button>
        </form>
      </div>
      <ProblemNote problem={problem} />
      {found !== undefined && <FoundRows rows={found} />}
    </>
  )
}

function FoundRows({ rows }: { rows: readonly AdminRow[] }) {
  if (rows.length === 0) {
    return (
      <div class="empty">
        <p>
          <strong>No row has it.</strong> It was never used, its row has expired, or it belongs to a scope that you may
          not see. References exist only where a handler records them.
        </p>
      </div>
    )
  }
  return (
    <div class="scroll" role="region" aria-label="Found rows" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {['row', 'operation', 'scope', 'state', 'what', 'created'].map(head => (
              <th scope="col" key={head}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <tr key={row.id}>
              <td>
                <a data-row href={hrefOf('key', row.id)}>
                  {row.id.slice(0, 8)}
                </a>
              </td>
              <td>{row.operation}</td>
              <td>{row.scope}</td>
              <td>
                <RowStates row={row} />
              </td>
              <td>{row.description ?? '–'}</td>
              <td>
                <Moment atMs={row.createdAtMs} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
