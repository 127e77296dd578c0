/** Stored bytes, shown as they are. The audit names who looked. */
import { useState } from 'preact/hooks'
import type { AdminRow, Revealed } from 'latchkey/admin'
import { useAct } from '../api/act.ts'
import { Dialog } from '../parts/dialog.tsx'
import { TextField } from '../parts/field.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { type ShownBytes, storedText } from './stored-text.ts'

type RevealedJson = Omit<Extract<Revealed, { kind: 'revealed' }>, 'body'> & { readonly body: ShownBytes }

interface RevealDialogProps {
  readonly what: 'input' | 'outcome'
  readonly row: AdminRow
  onClose(): void
}

export function RevealDialog({ what, row: given, onClose }: RevealDialogProps) {
  // As it was when the dialog was opened, as in every act.
  const [row] = useState(given)
  const [reason, setReason] = useState('')
  const [shown, setShown] = useState<RevealedJson>()
  const act = useAct<RevealedJson>()
  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const answer = await act.send({ path: `keys/${row.id}/reveal`, version: row.version, body: { what, reason } })
    if (answer.kind === 'ok') setShown(answer.value)
  }
  return (
    <Dialog title={`Reveal the ${what}`} onClose={onClose}>
      {shown === undefined ? (
        <form onSubmit={event => void submit(event)}>
          <p>It may contain what the customer sent. The audit records that you looked, and why.</p>
          <TextField label="Reason" value={reason} onValue={setReason} isRequired hasFocus />
          <ProblemNote problem={act.problem} />
          <button type="submit" disabled={act.isSending}>
            Reveal the {what}
          </button>
        </form>
      ) : (
        <>
          {shown.status !== undefined && <p>Status {shown.status}</p>}
          <pre tabIndex={0}>{storedText(shown.body)}</pre>
        </>
      )}
    </Dialog>
  )
}
