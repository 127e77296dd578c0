/** One act on one row: what it does, and the reason that the audit keeps. */
import { useState } from 'preact/hooks'
import type { AdminRow } from 'latchkey/admin'
import { useAct } from '../api/act.ts'
import { announce } from '../parts/announce.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { TextField } from '../parts/field.tsx'
import { ProblemNote } from '../parts/problem.tsx'

const explained = {
  take: {
    title: 'Take this row',
    path: 'take',
    does: 'Your name is shown beside it, so that no other person starts on it.',
  },
  look_up: {
    title: 'Look up at the provider now',
    path: 'reconcile',
    does: 'The next turn of a reconciler asks the provider about it.',
  },
  note: { title: 'Write a note', path: 'note', does: 'The reason is the note. Nothing else changes.' },
  park: { title: 'Park this row', path: 'park', does: 'No worker touches it until a person resumes it.' },
  resume: {
    title: 'Resume this row',
    path: 'resume',
    does: 'It goes back to the state that it had, and workers continue.',
  },
  forget: {
    title: 'Forget this row',
    path: 'forget',
    does: 'The row is deleted. A request with the same key RUNS AGAIN.',
  },
} as const

export type RowActName = keyof typeof explained

interface ActDialogProps {
  readonly name: RowActName
  readonly row: AdminRow
  onClose(isDone: boolean): void
}

export function ActDialog({ name, row: given, onClose }: ActDialogProps) {
  const { title, path, does } = explained[name]
  // As it was when the dialog was opened: an answer that was under way may still change what is behind it.
  const [row] = useState(given)
  const [reason, setReason] = useState('')
  const [confirm, setConfirm] = useState('')
  const act = useAct()
  const mustConfirm = name === 'forget'
  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const answer = await act.send({
      path: `keys/${row.id}/${path}`,
      version: row.version,
      body: { reason, ...(mustConfirm ? { confirm } : {}) },
    })
    if (answer.kind !== 'ok') return
    announce(answer.value.kind === 'second-person-needed' ? 'Proposed: a second person decides' : `${title}: done`)
    onClose(true)
  }
  return (
    <Dialog title={title} onClose={() => onClose(false)}>
      <form onSubmit={event => void submit(event)}>
        <p>{does}</p>
        <TextField label="Reason" hint="kept in the audit" value={reason} onValue={setReason} isRequired hasFocus />
        {mustConfirm && (
          <TextField label={`Type ${row.id.slice(0, 4)} to confirm`} value={confirm} onValue={setConfirm} isRequired />
        )}
        <ProblemNote problem={act.problem} />
        <button type="submit" disabled={act.isSending || (mustConfirm && confirm !== row.id.slice(0, 4))}>
          {title}
        </button>
      </form>
    </Dialog>
  )
}
