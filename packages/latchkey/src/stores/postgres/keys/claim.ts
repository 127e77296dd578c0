/** A claim, by the statement that knows every state. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { ClaimRequest, ClaimResult, GrantedFrom, Store } from '../../../ports/store.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import { recovery } from '../sql/fragments.ts'
import { readable, takeOverValues } from '../sql/values.ts'
import type { Dialect } from '../sql/names.ts'
import { newJournal, readJournal, workValues } from '../steps/journal.ts'
import type { Run } from '../connection/statement.ts'
import { claimStatement } from './claim-sql.ts'
import { keyRecord, type KeyRow } from './read.ts'

/** Null in `id`: there was no row. Null in `won_fence`: nothing was granted. */
type ClaimRow = {
  readonly won_fence: RawNumber | null
  readonly won_attempts: RawNumber
  readonly won_crashes: RawNumber
  readonly grant_from: GrantedFrom | null
} & (KeyRow | { readonly id: null })

type Won = Extract<ClaimResult, { kind: 'won' }>

/**
 * Each repetition means that another claim, sweep or release of the same identity committed in the milliseconds between;
 * each of them changes what the next look sees.
 */
const looksMax = 20

export function claimCall(sql: Dialect, run: Run): Pick<Store, 'claim'> {
  const texts = {
    claim: claimStatement(sql),
    withJournal: claimStatement(sql, 'with journal'),
  }
  const journalOf = readJournal(sql, run)
  async function withJournal(won: Won, { recovery, work }: ClaimRequest): Promise<Won> {
    if (recovery !== 'resume') return won
    if (won.from === 'none' || won.from === 'expired') return work ? { ...won, journal: newJournal(work) } : won
    // Ours now: nobody else writes to it between the grant and this look.
    const journal = await journalOf(won.claim.id)
    return journal ? { ...won, journal } : won
  }
  return {
    async claim(request) {
      let needsJournal = request.recovery === 'resume'
      for (let looks = 0; looks < looksMax; looks += 1) {
        const values = claimValues(request)
        const [row] = await (needsJournal
          ? run<ClaimRow>(texts.withJournal, [...values, ...workValues(request.work)])
          : run<ClaimRow>(texts.claim, values))
        const result = row && claimResult(request, row)
        if (result !== undefined) return result.kind === 'won' ? withJournal(result, request) : result
        needsJournal ||= row?.grant_from === 'expired'
      }
      throw new LatchkeyError(
        'store-unavailable',
        `the row of identity ${request.identity.id} changed under each of ${looksMax} looks: try again`,
      )
    },
  }
}

function claimResult(request: ClaimRequest, row: ClaimRow): ClaimResult | undefined {
  if (row.won_fence !== null) {
    const claim = { id: request.identity.id, fence: Number(row.won_fence), claimId: request.claimId }
    const [attempt, crashes] = [Number(row.won_attempts), Number(row.won_crashes)]
    return { kind: 'won', claim, attempt, crashes, from: row.grant_from ?? 'none' }
  }
  // Absent or grantable when looked at, and yet not granted: another transaction committed in between. Look again.
  if (row.id === null || row.grant_from !== null) return undefined
  return { kind: 'seen', record: keyRecord(row) }
}

/** Without what a batch of one does not write. */
export function plainClaimValues(request: ClaimRequest): readonly unknown[] {
  const { identity } = request
  return [
    identity.id,
    request.claimId,
    request.fingerprint,
    recovery[request.recovery],
    request.leaseMs,
    request.expiresInMs,
    readable(identity.scope),
    readable(identity.operation),
    request.description === undefined ? null : readable(request.description),
  ]
}

function claimValues(request: ClaimRequest): readonly unknown[] {
  return [...plainClaimValues(request), request.tombstoneMs ?? null, ...takeOverValues(request.takeOver)]
}
