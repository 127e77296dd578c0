/** Claims: by the statement that knows every state, and in batches of new rows. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { ClaimRequest, ClaimResult, GrantedFrom, Store } from '../../../ports/store.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { Batching } from '../batch/batched-calls.ts'
import { prepared, preparedForMany, preparedForOne } from '../connection/prepared.ts'
import type { RunStatement } from '../connection/statement.ts'
import {
  areUuids,
  byteas,
  type Column,
  float8s,
  inOrder,
  readable,
  smallints,
  texts as textColumn,
  uuids,
} from '../sql/columns.ts'
import { takeOverValues } from '../sql/values.ts'
import { recovery } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { newJournal, readJournal, workValues } from '../steps/journal.ts'
import { claimManyStatement, claimNewStatement, claimStatement } from './claim-sql.ts'
import { keyRecord, type KeyRow, needsNoDecision, recordsById } from './read.ts'

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
 * each of them changes what the next read sees.
 */
const attemptsMax = 20

export function claimCall(sql: Dialect, run: RunStatement): Pick<Store, 'claim'> {
  const texts = {
    claim: claimStatement(sql),
    withJournal: claimStatement(sql, 'with journal'),
  }
  const journalOf = readJournal(sql, run)
  async function withJournal(won: Won, { recovery, work }: ClaimRequest): Promise<Won> {
    if (recovery !== 'resume') return won
    if (won.from === 'none' || won.from === 'expired') return work ? { ...won, journal: newJournal(work) } : won
    // The claim is ours: no other process writes to the journal between the grant and this read.
    const journal = await journalOf(won.claim.id)
    return journal ? { ...won, journal } : won
  }
  return {
    async claim(request) {
      let needsJournal = request.recovery === 'resume'
      for (let attempts = 0; attempts < attemptsMax; attempts += 1) {
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
        `the row of identity ${request.identity.id} changed during each of ${attemptsMax} attempts: try again`,
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
  // Absent or grantable when it was read, and yet not granted: another transaction committed in between. Read again.
  if (row.id === null || row.grant_from !== null) return undefined
  return { kind: 'seen', record: keyRecord(row) }
}

/** What a new row has of a request that may go in a batch. */
function newRowValues(request: ClaimRequest): unknown[] {
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
  return [...newRowValues(request), request.tombstoneMs ?? null, ...takeOverValues(request.takeOver)]
}

/** One call of a key is sent at a time, and a scope has its share of the open ones. */
export const byIdentity = {
  keyOf: ({ identity }: Pick<ClaimRequest, 'identity'>): string => identity.id,
  scopeOf: ({ identity }: Pick<ClaimRequest, 'identity'>): string => identity.scope,
}

export function batchedClaim({ sql, single, together, sideBySide }: Batching): Pick<Store, 'claim'> {
  const shared = { name: 'claim', ...byIdentity, mayShare: mayShareClaim, sendAlone: single.claim }
  const replays = expectReplays()
  const many = {
    insert: preparedForMany(prepared('claim', claimManyStatement(sql, 'insert')), newRowColumns),
    look: preparedForMany(prepared('look_and_claim', claimManyStatement(sql, 'look')), newRowColumns),
  }
  const batched = together<ClaimRequest, ClaimResult>({
    ...shared,
    many: requests => many[replays.areExpected() ? 'look' : 'insert'](inOrder(requests, byIdentity.keyOf)),
    refused: replays.refused,
    resultsOf(requests, answer) {
      replays.met(answer.rows.length)
      if (answer.rows.length === 0) return requests.map(wonNew)
      const seen = recordsById(answer)
      return requests.map(request => {
        const record = seen.get(request.identity.id)
        if (record === undefined) return wonNew(request)
        // The others may be granted, or are out of the ordinary: the statement for one row decides.
        return needsNoDecision(record) ? ({ kind: 'seen', record } as const) : single.claim(request)
      })
    },
    one: preparedForOne(prepared('claim_one', claimNewStatement(sql)), newRowColumns),
    resultOf: (request, { count }) => (count === 1 ? wonNew(request) : undefined),
  })
  const alone = sideBySide<ClaimRequest, ClaimResult>(shared)
  return { claim: request => (mayBeBatched(request) ? batched(request) : alone(request)) }
}

/** Phased work has a journal, which is written with the grant; a tombstone is rare enough to be sent alone. */
function mayBeBatched({ recovery: by, tombstoneMs, identity, claimId }: ClaimRequest): boolean {
  return by !== 'resume' && tombstoneMs === undefined && areUuids({ id: identity.id, claimId })
}

function wonNew({ identity, claimId }: ClaimRequest): ClaimResult {
  return { kind: 'won', claim: { id: identity.id, fence: 1, claimId }, attempt: 1, crashes: 0, from: 'none' }
}

/**
 * A grant is its caller's alone. A row that was seen is also seen by the claim that joined, unless it could have been granted to that one:
 * that needs the row's own fingerprint, and the one that was sent had another.
 */
function mayShareClaim(result: ClaimResult, sent: ClaimRequest, joined: ClaimRequest): boolean {
  if (result.kind === 'won' || result.record.expired) return false
  const { record } = result
  const isOf = ({ fingerprint }: ClaimRequest) => Buffer.compare(fingerprint, record.fingerprint) === 0
  // Nor where it is bound to what each of them may take over.
  const asFree = sent.takeOver === undefined || joined.takeOver === 'none'
  return needsNoDecision(record) || (isOf(sent) && asFree) || !isOf(joined)
}

/** In the order of `newRowValues`. */
const newRowColumns: readonly Column<ClaimRequest>[] = [
  uuids(each => each.identity.id),
  uuids(each => each.claimId),
  byteas(each => each.fingerprint),
  smallints(each => recovery[each.recovery]),
  float8s(each => each.leaseMs),
  float8s(each => each.expiresInMs),
  textColumn(each => readable(each.identity.scope)),
  textColumn(each => readable(each.identity.operation)),
  textColumn(each => (each.description === undefined ? null : readable(each.description))),
]

/**
 * Batches without such a row before none is expected again. A look costs a twentieth of a claim; a row that was not looked for costs its
 * batch a wait where another transaction is just changing it, so one replay in hundreds of claims is reason enough to look.
 */
const quietBatches = 16

/** Whether the next batch of claims will meet rows that are there. It is then cheaper to look for them first. */
export interface ExpectedReplays {
  areExpected(): boolean
  /** A batch has met so many. */
  met(rows: number): void
  /** One that was refused may have met a row that another transaction was changing. */
  refused(): void
}

export function expectReplays(): ExpectedReplays {
  let batchesLeft = 0
  return {
    areExpected: () => batchesLeft > 0,
    met: rows => void (batchesLeft = rows > 0 ? quietBatches : Math.max(0, batchesLeft - 1)),
    refused: () => void (batchesLeft = quietBatches),
  }
}
