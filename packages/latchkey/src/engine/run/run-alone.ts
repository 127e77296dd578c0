/**
 * At most one handler per identity at a time in this process, for operations that may run while the store is away: then no row
 * keeps duplicates apart, so the process does what it can.
 */
import { type Answer, type ExecuteRequest, refused } from '../answer.ts'
import type { Core } from '../runtime.ts'
import { countInProgress } from './answer-from-row.ts'

export interface Alone {
  readonly request: ExecuteRequest
  readonly run: () => Promise<Answer>
  /** Called instead where a handler of the identity is under way. */
  readonly giveUp?: () => Promise<unknown>
}

export async function runAlone<Tx>(core: Core<Tx>, { request, run, giveUp }: Alone): Promise<Answer> {
  const { executing } = core
  const { id } = request.identity
  if (executing.has(id)) {
    await giveUp?.()
    countInProgress(core, request)
    return refused('in-progress', { retryAfterMs: 1_000 })
  }
  executing.add(id)
  try {
    return await run()
  } finally {
    executing.delete(id)
  }
}
