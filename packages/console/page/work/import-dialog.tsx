/** The one way to answer many rows: what the provider's own export says, row by row, with a plan first. */
import { useRef, useState } from 'preact/hooks'
import type { BulkOutcome, BulkPlan } from 'latchkey/admin'
import { useAct } from '../api/act.ts'
import { Dialog } from '../parts/dialog.tsx'
import { ChoiceField, Field, TextField } from '../parts/field.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { BulkProgress } from './bulk-progress.tsx'
import { type ExportGuess, guessColumns, listOf } from './export-columns.ts'

const matches = [
  ['downstream_key', 'the downstream key'],
  ['reference', 'a reference that the handler recorded'],
  ['id', 'the id of the row'],
] as const

export function ImportDialog({ onClose }: { onClose: (isStarted: boolean) => void }) {
  const isStarted = useRef(false)
  const close = () => onClose(isStarted.current)
  const [csv, setCsv] = useState('')
  const [columns, setColumns] = useState<ExportGuess>()
  const [reason, setReason] = useState('')
  const [plan, setPlan] = useState<BulkPlan>()
  const planning = useAct<BulkOutcome>()
  async function choose(file: File | undefined): Promise<void> {
    const text = (await file?.text()) ?? ''
    setCsv(text)
    setColumns(text === '' ? undefined : guessColumns(text))
  }
  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    if (columns === undefined) return
    const body = { act: 'import_evidence', reason, file: fileOf(csv, columns) }
    const answer = await planning.send({ path: 'bulk', body })
    if (answer.kind === 'ok' && 'plan' in answer.value) setPlan(answer.value.plan)
  }
  return (
    <Dialog title="Import a provider's export" onClose={close}>
      {plan !== undefined ? (
        <BulkProgress plan={plan} onStart={() => (isStarted.current = true)} onClose={close} />
      ) : (
        <form onSubmit={event => void submit(event)}>
          <p>
            A CSV file with one line for each request that the provider has seen. Nothing is done before you have seen
            the plan.
          </p>
          <Field label="CSV file">
            <input
              type="file"
              accept=".csv,text/csv"
              required
              onChange={event => void choose(event.currentTarget.files?.[0])}
            />
          </Field>
          {/* A new field takes the focus when the file is read: nobody has to pass the columns, which are usually right. */}
          {columns !== undefined && (
            <TextField label="Reason" hint="kept in the audit" value={reason} onValue={setReason} isRequired hasFocus />
          )}
          {columns !== undefined && <Columns columns={columns} onColumns={setColumns} />}
          <ProblemNote problem={planning.problem} />
          <button type="submit" disabled={planning.isSending}>
            Make the plan
          </button>
        </form>
      )}
    </Dialog>
  )
}

function Columns({ columns, onColumns }: { columns: ExportGuess; onColumns: (columns: ExportGuess) => void }) {
  const names = columns.columns.map(name => [name, name] as const)
  const set = (changed: Partial<ExportGuess>) => onColumns({ ...columns, ...changed })
  return (
    <div class="grid">
      <ChoiceField label="Column to match" value={columns.match} onValue={match => set({ match })} options={names} />
      <ChoiceField
        label="That column holds"
        value={columns.by}
        onValue={by => set({ by: matches.find(([each]) => each === by)?.[0] ?? 'downstream_key' })}
        options={matches}
      />
      <ChoiceField
        label="Column with the status"
        value={columns.status}
        onValue={status => set({ status })}
        options={names}
      />
      <ChoiceField
        label="Column with the provider's id"
        value={columns.reference}
        onValue={reference => set({ reference })}
        options={[['', 'none'], ...names]}
      />
      <TextField
        label="Statuses that mean it happened"
        hint="separated by commas"
        value={columns.happened}
        onValue={happened => set({ happened })}
      />
      <TextField
        label="Statuses that mean it did not happen"
        hint="may need a second person"
        value={columns.didNotHappen}
        onValue={didNotHappen => set({ didNotHappen })}
      />
    </div>
  )
}

function fileOf(csv: string, { match, by, status, reference, happened, didNotHappen }: ExportGuess) {
  return {
    csv,
    match: { column: match, by },
    status: { column: status, happened: listOf(happened), didNotHappen: listOf(didNotHappen) },
    ...(reference === '' ? {} : { reference }),
  }
}
