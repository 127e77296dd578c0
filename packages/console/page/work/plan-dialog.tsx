/** Many rows at once, in two steps: a plan that fixes the rows and says what is left out, then its start. */
import { useRef, useState } from 'preact/hooks'
import type { BulkGiven, BulkOutcome, BulkPlan } from 'latchkey/admin'
import { useAct } from '../api/act.ts'
import { TextField } from '../parts/field.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { actNames } from './act-names.ts'
import { BulkProgress } from './bulk-progress.tsx'

function whichText({ act, ids }: PlanDialogProps['given']): string {
  if (ids === undefined) return 'All rows of this group, as they are now'
  const what = act === 'redrive' ? 'message' : 'selected row'
  return ids.length === 1 ? `One ${what}` : `${ids.length} ${what}s`
}

interface PlanDialogProps {
  readonly given: Omit<BulkGiven, 'reason' | 'act'> & { readonly act: string }
  /** `isStarted`: something may have been done. */
  onClose(isStarted: boolean): void
}

export function PlanDialog({ given, onClose }: PlanDialogProps) {
  const [reason, setReason] = useState('')
  const [plan, setPlan] = useState<BulkPlan>()
  const isStarted = useRef(false)
  const close = () => onClose(isStarted.current)
  const planning = useAct<BulkOutcome>()
  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const answer = await planning.send({ path: 'bulk', body: { ...given, reason } })
    if (answer.kind === 'ok' && 'plan' in answer.value) setPlan(answer.value.plan)
  }
  return (
    <Dialog title={actNames[given.act] ?? given.act} onClose={close}>
      {plan === undefined ? (
        <form onSubmit={event => void submit(event)}>
          <p>{whichText(given)}. Nothing is done yet: a plan is shown first.</p>
          <TextField label="Reason" hint="kept in the audit" value={reason} onValue={setReason} isRequired hasFocus />
          <ProblemNote problem={planning.problem} />
          <button type="submit" disabled={planning.isSending}>
            Make the plan
          </button>
        </form>
      ) : (
        <BulkProgress plan={plan} onStart={() => (isStarted.current = true)} onClose={close} />
      )}
    </Dialog>
  )
}
