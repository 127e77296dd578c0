/** Many rows at once, in two steps: a plan that fixes the rows and says what is left out, then its start. */
import { useState } from 'preact/hooks'
import type { BulkGiven, BulkOutcome, BulkPlan } from 'latchkey/admin'
import { useAct } from '../api/act.ts'
import { TextField } from '../parts/field.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { actNames } from './act-names.ts'
import { BulkProgress } from './bulk-progress.tsx'

interface PlanDialogProps {
  readonly given: Omit<BulkGiven, 'reason' | 'act'> & { readonly act: string }
  onClose(): void
}

export function PlanDialog({ given, onClose }: PlanDialogProps) {
  const [reason, setReason] = useState('')
  const [plan, setPlan] = useState<BulkPlan>()
  const planning = useAct<BulkOutcome>()
  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const answer = await planning.send({ path: 'bulk', body: { ...given, reason } })
    if (answer.kind === 'ok' && 'plan' in answer.value) setPlan(answer.value.plan)
  }
  return (
    <Dialog title={actNames[given.act] ?? given.act} onClose={onClose}>
      {plan === undefined ? (
        <form onSubmit={event => void submit(event)}>
          <p>
            {given.ids === undefined ? 'All rows of this group, as they are now' : `${given.ids.length} selected rows`}.
            Nothing is done yet: a plan is shown first.
          </p>
          <TextField label="Reason" hint="stands in the audit" value={reason} onValue={setReason} isRequired hasFocus />
          <ProblemNote problem={planning.problem} />
          <button type="submit" disabled={planning.isSending}>
            Make the plan
          </button>
        </form>
      ) : (
        <BulkProgress plan={plan} onClose={onClose} />
      )}
    </Dialog>
  )
}
