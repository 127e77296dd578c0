/** An act that needs nothing but a reason. */
import { useState } from 'preact/hooks'
import { useAct } from '../api/act.ts'
import { announce } from './announce.tsx'
import { Dialog } from './dialog.tsx'
import { TextField } from './field.tsx'
import { ProblemNote } from './problem.tsx'

export interface ReasonedAct {
  readonly title: string
  readonly does: string
  readonly path: string
}

export function ReasonDialog({
  act: { title, does, path },
  onClose,
}: {
  act: ReasonedAct
  onClose: (isDone: boolean) => void
}) {
  const [reason, setReason] = useState('')
  const act = useAct()
  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const answer = await act.send({ path, body: { reason } })
    if (answer.kind !== 'ok') return
    announce(`${title}: done`)
    onClose(true)
  }
  return (
    <Dialog title={title} onClose={() => onClose(false)}>
      <form onSubmit={event => void submit(event)}>
        <p>{does}</p>
        <TextField label="Reason" hint="kept in the audit" value={reason} onValue={setReason} isRequired hasFocus />
        <ProblemNote problem={act.problem} />
        <button type="submit" disabled={act.isSending}>
          {title}
        </button>
      </form>
    </Dialog>
  )
}
