/** A look at the row for a request that the application refused before its handler could begin. Claims nothing. */
import type { KeyRecord } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, inProgress, unavailable } from '../answer.ts'
import type { Settings } from '../options.ts'
import { decide } from '../rules/decide.ts'
import type { Core } from '../runtime.ts'
import { admit, type Once } from './admit.ts'
import { answerFromRow, countInProgress } from './answer-from-row.ts'

/** As for claims: a row that keeps changing is contended. */
const looksMax = 5

/**
 * The work is what the application refused the request with. A request that has a row is answered from it: the first one may have made what
 * its retry is now refused for, such as a name that is taken. Without a row, the application's error is the end of it.
 */
export function lookOnly<Tx, C>(core: Core<Tx>, settings: Settings<C>): Once<unknown> {
  return admit<Tx, C, unknown>(core, settings, async (asked, error) => {
    const nothingRan: Answer = { kind: 'executed', attempt: { kind: 'threw', error }, stored: 'not-stored' }
    let request = asked
    for (let look = 0; look < looksMax; look++) {
      const record = await read(core, request)
      const isAway = record !== undefined && 'cause' in record
      if (isAway && settings.onStoreDown === 'refuse') return unavailable(record.cause)
      if (isAway || record === undefined) return isUnderWay(core, request) ? inProgress() : nothingRan
      if (decide(record, request.fingerprint).kind === 'claim-again') return isOver(record) ? nothingRan : inProgress()
      const found = await answerFromRow(core, settings, { record, request })
      if (found.kind === 'answer') return found.answer
      request = found.request
    }
    return inProgress()
  })
}

function read<Tx>({ calls, store }: Core<Tx>, { identity }: ExecuteRequest) {
  return calls.call('read', () => store.read(identity.id)).catch((cause: unknown) => ({ cause }))
}

/** Without a row: an atomic handler before its commit, or one that runs while the store is down. */
function isUnderWay<Tx>(core: Core<Tx>, request: ExecuteRequest): boolean {
  if (!core.executing.has(request.identity.id)) return false
  countInProgress(core, request)
  return true
}

/** Phased work that failed for now, or that nobody has begun, is not over: a worker runs it, whatever this client is answered. */
function isOver({ expired, recovery }: KeyRecord): boolean {
  return expired || recovery !== 'resume'
}
