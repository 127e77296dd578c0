/** What an atomic execution does when its handler misused the transaction: answered after an error in it, or ended it itself. */
import type { AtomicRequest, HandlerEnd } from '../../ports/store.ts'
import { type Answer, type Attempt, errorOf, outcomeUnknown, refused } from '../answer.ts'
import { afterRollback, recordAlone, rememberUnknown, type RolledBack } from './atomic-endings.ts'
import type { Core } from '../runtime.ts'
import type { Settings } from '../options.ts'

/** What operators see of a row whose handler committed and did not answer. */
export const committedByHandler = 'committed-by-handler'

export interface HandlerRun<Tx> extends RolledBack<Tx> {
  /** The handler returned, and its answer is of a status that is stored: it was to be committed. */
  readonly wasReturned: boolean
}

/**
 * The transaction is rolled back: the handler caught the error of a statement and answered all the same. A refusal (4xx) is true without
 * rows, as a thrown one is. Any other answer is about rows that are gone.
 */
export async function afterAbort<Tx>(core: Core<Tx>, ran: HandlerRun<Tx>): Promise<Answer> {
  const { attempt, judgement, row } = ran
  if (judgement.kind !== 'keep' || !isRefusal(attempt)) return rolledBack(core, row, savepointsNeeded(row))
  return { kind: 'executed', attempt, stored: await recordAlone(core, ran, judgement.outcome) }
}

function isRefusal(attempt: Attempt): boolean {
  if (attempt.kind === 'threw') return false
  const status = attempt.kind === 'answered' ? attempt.outcome.status : attempt.status
  return status >= 400 && status < 500
}

export function savepointsNeeded({ identity }: AtomicRequest): Error {
  return new Error(
    `the handler of ${identity.operation} answered although a statement of its transaction had failed, so all of it was rolled back: ` +
      'put a savepoint around a statement whose error you catch (SAVEPOINT and ROLLBACK TO, or a nested transaction of your query builder)',
  )
}

/**
 * The handler ended the transaction without its `tx`. What it committed cannot be undone, so the key is written afterwards, in a transaction of
 * its own; until then a duplicate could run. In doubt it does not run again.
 */
export async function afterHandlerEnd<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  ran: HandlerRun<Tx> & { readonly how: HandlerEnd },
): Promise<Answer> {
  const { how, row, attempt, judgement, wasReturned } = ran
  const { operation } = row.identity
  const error = new Error(
    `the handler of ${operation} ended its transaction itself (${how}): return to commit, throw to roll back, and nest transactions through tx`,
  )
  if (how === 'rolled-back') return wasReturned ? rolledBack(core, row, error) : afterRollback(core, settings, ran)
  report(core, row, error)
  if (how === 'committed' && wasReturned && judgement.kind === 'keep')
    return { kind: 'executed', attempt, stored: await recordAlone(core, ran, judgement.outcome) }
  await rememberUnknown(core, settings, { row, errorCode: committedByHandler })
  return outcomeUnknown(errorOf(attempt) ?? error)
}

/** The client learns that nothing happened; the developer, what to change. */
export function rolledBack<Tx>(core: Core<Tx>, row: AtomicRequest, cause: unknown): Answer {
  report(core, row, cause)
  return refused('transaction-rolled-back', { cause })
}

function report<Tx>(core: Core<Tx>, { identity }: AtomicRequest, error: unknown): void {
  const { operation, id } = identity
  core.telemetry.report('a handler misused its transaction', { operation, identity: id, error })
}
