/** Where an outcome is kept: with its key when it is small and its owner's, which nearly all are, or in a table apart. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim } from '../../../ports/store.ts'
import { headersToText } from '../../shared/outcome-codec.ts'
import type { Handle } from '../connection/handle.ts'

// by_operator: anybody but the owner, since there is more evidence than an operator's.
const putOutcomeSql = `
  REPLACE INTO latchkey_outcomes (id, fence, by_operator, status, version, headers, body)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`

export function putOutcome(
  handle: Handle,
  grant: Pick<Claim, 'id' | 'fence'>,
  answer: { outcome: Outcome; byOwner: boolean },
): void {
  const { status, version, headers, body } = answer.outcome
  const text = headersToText(headers)
  handle.run(putOutcomeSql, [grant.id, grant.fence, !answer.byOwner, status, version, text, body ?? null])
}
