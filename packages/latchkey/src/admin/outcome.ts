/** What the store made of an act, in the words of the service. */
import type { ActResult, RowAct } from '../ports/faculties/admin.ts'
import type { RowState } from '../ports/store.ts'
import type { Actor } from './admin.ts'
import { type AdminContext, type Attempt, refuse } from './context.ts'
import type { ActOutcome, AdminRow } from './results.ts'
import { currentView } from './view.ts'

export function deniedAct({ latchkey }: AdminContext, operation: string, quarantineMs: number): RowAct {
  const { retentionMs } = latchkey.retentionOf(operation)
  return { kind: 'settle', verdict: { kind: 'never-happened' }, retentionMs, quarantineMs }
}

export interface Asked {
  readonly context: AdminContext
  readonly by: Actor
  readonly attempt: Attempt
  readonly row: AdminRow
  readonly quarantineOf: (operation: string) => number
}

/** What the store made of it, with the row as it is now. Refusals are written down. */
export async function outcomeOf(
  { context, attempt, row, quarantineOf }: Asked,
  result: ActResult,
): Promise<ActOutcome> {
  const now = await currentView(context, row.id, quarantineOf)
  switch (result.kind) {
    case 'acted':
      return { kind: 'done', row: now, auditId: result.auditId, repeated: result.repeated }
    case 'row-moved':
      return refuse(context, attempt, now === undefined ? { kind: 'not-found' } : { kind: 'row-moved', row: now })
    case 'wrong-state':
      return refuse(context, attempt, { ...result, why: whyNot(attempt.act, result.state, now?.parked ?? false) })
    case 'request-reused':
      return refuse(context, attempt, {
        kind: 'invalid',
        why: 'the request id has done another act: give each its own',
      })
    case 'proposal-closed':
      return refuse(context, attempt, { kind: 'proposal-closed', state: 'void' })
    default:
      return refuse(context, attempt, result)
  }
}

/** What an operator may do in each state, in the words of the act that was tried. */
export function whyNot(act: string, state: RowState, parked: boolean): string {
  if (act === 'resume') return parked ? 'the row could not be resumed' : 'the row is not parked'
  if (state === 'in_progress') return 'the row is running: wait for its end, or for a sweep if its owner is silent'
  if (act.startsWith('settle')) return `only an unknown row is settled by a person; this one is ${state}`
  if (act === 'forget') return `only a completed row is forgotten; this one is ${state}`
  if (act === 'look_up')
    return parked ? 'the row is parked: resume it first' : `only an unknown row is looked up; this one is ${state}`
  if (parked) return 'the row is parked already'
  return `this cannot be done to a row that is ${state}`
}
