/** The four calls of every request, gathered: concurrent calls of a process share a statement, a commit and its flush. */
import { LatchkeyError, misconfigured } from '../../../ports/errors.ts'
import type {
  Claim,
  ClaimRequest,
  ClaimResult,
  EnqueueRequest,
  EnqueueResult,
  KeyRecord,
  OwnerResult,
  Store,
} from '../../../ports/store.ts'
import { byteaArray, float8Array, smallintArray, textArray, uuidArray } from '../sql/binary-array.ts'
import { plainClaimValues } from '../keys/claim.ts'
import { isPlain, keyRecord, readManyStatement, type KeyRow } from '../keys/read.ts'
import { isUuid, readable } from '../sql/values.ts'
import { recordColumns, recovery } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import type { PgPool } from '../driver.ts'
import type { GatherLimits } from './gather.ts'
import { laneOn, type OpenLane } from './lane.ts'
import { claimNewStatement } from '../keys/claim-sql.ts'
import { completeFirstStatement, packedOutcome } from '../keys/complete.ts'
import { untilLaneIsFree, writes } from './single-row.ts'
import type { Send } from '../connection/prepared.ts'
import { bounded, rowsOf, type Run } from '../connection/statement.ts'

export interface BatchingOptions {
  /** The most calls in one batch. Default: 250. Smaller makes batches shorter, larger helps only with many connections. */
  readonly sizeMax?: number
  /**
   * The most calls of one kind that are open at a time. Default: 10,000; no scope has more than it leaves free, so one alone has
   * half. The next one is refused with `overloaded`, which HTTP answers with 503: a database that does not keep up must not fill the
   * process's memory. Calls for one key that wait at the same time count once; of those behind the first there are at most four
   * times as many, and one key never has more than half.
   */
  readonly openMax?: number
  /** How long a batch may wait for its answer. Default: 2,000 ms, as `storeTimeoutMs` of `createLatchkey`; change it with that. */
  readonly timeoutMs?: number
  /**
   * How long a call may wait for its batch. Default: 3,000 ms; then it is refused with `overloaded`. Lower it where clients give up
   * sooner.
   */
  readonly queueMsMax?: number
}

type Gathered = Pick<Store, 'claim' | 'enqueue' | 'read' | 'heartbeat' | 'complete'>

interface Completion {
  readonly claim: Claim
  readonly retentionMs: number
  readonly packed: Buffer
  readonly alone: () => Promise<OwnerResult>
}

interface Beat {
  readonly claim: Claim
  readonly leaseMs: number
}

export interface Batching {
  readonly sql: Dialect
  readonly pool: PgPool
  readonly send: Send
  readonly options: BatchingOptions
  /** The statements for one row: for a batch of one, and for all that a batch cannot decide. */
  readonly single: Gathered
}

/** One call of a key is sent at a time, and a scope has its share of the open ones. */
const byIdentity = {
  keyOf: ({ identity }: Pick<ClaimRequest, 'identity'>) => identity.id,
  scopeOf: ({ identity }: Pick<ClaimRequest, 'identity'>) => identity.scope,
}

export function batchedCalls({ sql, pool, send, options, single }: Batching): Gathered {
  const ask = bounded(pool, sql.schema, { send, limitMs: options.timeoutMs ?? timeoutMsDefault })
  const together: Together = { run: rowsOf(ask), texts: batchStatements(sql), single }
  const lone = { claim: claimNewStatement(sql), complete: completeFirstStatement(sql) }
  const limits = limitsOf(options)
  const lane = laneOn(limits)
  const alone = joinedAlone(laneOn({ ...limits, sizeMax: pool.options?.max ?? aloneMax }), single)
  const claim = lane<ClaimRequest, ClaimResult>({
    name: 'claim',
    ...byIdentity,
    alone: request => single.claim(request),
    async one(request) {
      if (await writes(ask, lone.claim, plainClaimValues(request))) return wonFresh(request)
      const [result = single.claim(request)] = await claimTogether(together, [request])
      return result
    },
    together: requests => claimTogether(together, requests),
    mayShare: mayShareClaim,
  })
  const read = lane<string, KeyRecord | undefined>({
    name: 'read',
    keyOf: id => id,
    alone: id => single.read(id),
    together: ids => readTogether(together, ids),
    mayShare: () => true,
  })
  const complete = lane<Completion, OwnerResult>({
    name: 'complete',
    keyOf: ({ claim: { id } }) => id,
    alone: ({ alone }) => alone(),
    one: async ({ claim: { id, claimId }, retentionMs, packed, alone }) =>
      (await writes(ask, lone.complete, [id, claimId, retentionMs, packed])) ? 'written' : alone(),
    together: async completions => {
      const written = await idsWritten(together, 'complete', [
        uuidArray(completions.map(each => each.claim.id)),
        uuidArray(completions.map(each => each.claim.claimId)),
        float8Array(completions.map(each => each.retentionMs)),
        byteaArray(completions.map(each => each.packed)),
      ])
      // Not in progress under this claim any more: the statement for one row looks at why.
      return completions.map(each => (written(each.claim.id) ? 'written' : each.alone()))
    },
  })
  const heartbeat = lane<Beat, OwnerResult>({
    name: 'heartbeat',
    keyOf: ({ claim: { id } }) => id,
    alone: each => single.heartbeat(each.claim, each.leaseMs),
    together: beats => beatTogether(together, beats),
  })
  return {
    claim: request => (goesAlone(request) ? alone.claim(request) : claim(request)),
    enqueue: request => alone.enqueue(request),
    read: id => (isUuid(id) ? read(id) : single.read(id)),
    heartbeat: (owned, leaseMs) =>
      areUuids(owned) ? heartbeat({ claim: owned, leaseMs }) : single.heartbeat(owned, leaseMs),
    complete(owned, outcome, retentionMs) {
      const byItself = () => single.complete(owned, outcome, retentionMs)
      // A later grant has to remove what an earlier one left, and large outcomes have a table of their own.
      const packed = owned.fence === 1 && areUuids(owned) ? packedOutcome(outcome, owned.fence) : undefined
      return packed === undefined ? byItself() : complete({ claim: owned, retentionMs, packed, alone: byItself })
    },
  }
}

/** Phased work has a journal, which is written with the grant; a tombstone is rare enough to go alone. */
function goesAlone({ recovery: by, tombstoneMs, identity, claimId }: ClaimRequest): boolean {
  return by === 'resume' || tombstoneMs !== undefined || !isUuid(identity.id) || !isUuid(claimId)
}

function areUuids({ id, claimId }: Claim): boolean {
  return isUuid(id) && isUuid(claimId)
}

const timeoutMsDefault = 2_000
const queueMsDefault = 3_000

export function queueMsOf(batching: boolean | BatchingOptions): number {
  if (typeof batching === 'boolean') return batching ? queueMsDefault : 0
  return batching.queueMsMax ?? queueMsDefault
}

function limitsOf({
  sizeMax = 250,
  openMax = 10_000,
  timeoutMs = timeoutMsDefault,
  queueMsMax = queueMsDefault,
}: BatchingOptions): GatherLimits {
  for (const [name, value] of Object.entries({ sizeMax, openMax, timeoutMs, queueMsMax })) {
    if (!(value >= 1)) throw misconfigured(`batching.${name} must be at least 1 (got ${value})`)
  }
  return {
    sizeMax,
    openMax,
    behindMax: 4 * openMax,
    waitMsMax: queueMsMax,
    // Before the caller's own limit, at which it would take a call that was never sent for one whose answer was lost.
    shareMsMax: queueMsMax + 0.9 * timeoutMs,
  }
}

/** The most statements of one row at a time, of a pool that does not say how many connections it has. */
const aloneMax = 10

/**
 * At most as many at once as there are connections. The others wait in the queue and not in the pool, so that their wait is known for what
 * it is. One that waits for a lock does not hold up the next ones for long.
 */
async function sideBySide<Item, Result>(
  items: readonly Item[],
  send: (item: Item) => Promise<Result>,
): Promise<readonly Promise<Result>[]> {
  const answers = items.map(send)
  await untilLaneIsFree(Promise.allSettled(answers))
  return answers
}

/** What has statements of its own, and calls of one key that share one of them. */
function joinedAlone(lane: OpenLane, single: Gathered): Pick<Store, 'claim' | 'enqueue'> {
  return {
    claim: lane<ClaimRequest, ClaimResult>({
      name: 'claim',
      ...byIdentity,
      alone: request => single.claim(request),
      together: requests => sideBySide(requests, each => single.claim(each)),
      mayShare: mayShareClaim,
    }),
    enqueue: lane<EnqueueRequest, EnqueueResult>({
      name: 'enqueue',
      ...byIdentity,
      alone: request => single.enqueue(request),
      together: requests => sideBySide(requests, each => single.enqueue(each)),
      // Whatever its fingerprint: only a row that is not there, or over, is queued anew.
      mayShare: result => result.kind === 'seen' && !result.record.expired,
    }),
  }
}

interface Together {
  readonly run: Run
  readonly texts: BatchStatements
  readonly single: Gathered
}

async function beatTogether(together: Together, beats: readonly Beat[]): Promise<readonly OwnerResult[]> {
  const written = await idsWritten(together, 'heartbeat', [
    uuidArray(beats.map(each => each.claim.id)),
    float8Array(beats.map(each => each.claim.fence)),
    uuidArray(beats.map(each => each.claim.claimId)),
    float8Array(beats.map(each => each.leaseMs)),
  ])
  return beats.map(each => (written(each.claim.id) ? 'written' : 'claim-lost'))
}

/**
 * A grant is its caller's alone. A row that was seen is seen by who joined, too, unless it could have been granted to them: that needs
 * the row's own fingerprint, and the one that was sent had another.
 */
function mayShareClaim(result: ClaimResult, sent: ClaimRequest, joined: ClaimRequest): boolean {
  if (result.kind === 'won' || result.record.expired) return false
  const { record } = result
  const isOf = ({ fingerprint }: ClaimRequest) => Buffer.compare(fingerprint, record.fingerprint) === 0
  // Nor where it is bound to what each of them may take over.
  const asFree = sent.takeOver === undefined || joined.takeOver === 'none'
  return isPlain(record) || (isOf(sent) && asFree) || !isOf(joined)
}

function wonFresh({ identity, claimId }: ClaimRequest): ClaimResult {
  return { kind: 'won', claim: { id: identity.id, fence: 1, claimId }, attempt: 1, crashes: 0, from: 'none' }
}

async function claimTogether(
  { run, texts, single }: Together,
  requests: readonly ClaimRequest[],
): Promise<readonly (ClaimResult | Promise<ClaimResult>)[]> {
  const seen = recordsById(await run<KeyRow>(texts.claim, claimArrays(requests)))
  return requests.map(request => {
    const record = seen.get(request.identity.id)
    if (record === undefined) return wonFresh(request)
    // The others may be granted, or are out of the ordinary: the statement for one row decides.
    return isPlain(record) ? { kind: 'seen', record } : single.claim(request)
  })
}

async function readTogether(
  { run, texts, single }: Together,
  ids: readonly string[],
): Promise<readonly (KeyRecord | undefined | Promise<KeyRecord | undefined>)[]> {
  const found = recordsById(await run<KeyRow>(texts.read, [uuidArray(ids)]))
  return ids.map(id => {
    const record = found.get(id)
    return record?.state === 'completed' && record.outcome === undefined ? single.read(id) : record
  })
}

function recordsById(rows: readonly KeyRow[]): ReadonlyMap<string, KeyRecord> {
  return new Map(rows.map(row => [row.id, keyRecord(row)]))
}

/** Null: all of them. */
async function idsWritten(
  { run, texts }: Together,
  call: 'complete' | 'heartbeat',
  values: readonly unknown[],
): Promise<(id: string) => boolean> {
  const [row] = await run<{ readonly written: readonly string[] | null }>(texts[call], values)
  if (row === undefined) throw new LatchkeyError('invariant', 'a function of the store returned no row')
  if (row.written === null) return () => true
  const written = new Set(row.written)
  return id => written.has(id)
}

function claimArrays(requests: readonly ClaimRequest[]): readonly unknown[] {
  return [
    uuidArray(requests.map(each => each.identity.id)),
    uuidArray(requests.map(each => each.claimId)),
    byteaArray(requests.map(each => each.fingerprint)),
    smallintArray(requests.map(each => recovery[each.recovery])),
    float8Array(requests.map(each => each.leaseMs)),
    float8Array(requests.map(each => each.expiresInMs)),
    textArray(requests.map(each => readable(each.identity.scope))),
    textArray(requests.map(each => readable(each.identity.operation))),
    textArray(requests.map(each => (each.description === undefined ? null : readable(each.description)))),
  ]
}

type BatchStatements = Readonly<Record<'claim' | 'read' | 'complete' | 'heartbeat', string>>

function batchStatements(sql: Dialect): BatchStatements {
  const columns = `${recordColumns(sql)}, k.outcome as outcome_packed`
  return {
    claim: `select ${columns} from ${sql.functions.claimMany}($1::uuid[], $2::uuid[], $3::bytea[], $4::smallint[],
      $5::float8[], $6::float8[], $7::text[], $8::text[], $9::text[]) k`,
    read: readManyStatement(sql),
    complete: `select ${sql.functions.completeMany}($1::uuid[], $2::uuid[], $3::float8[], $4::bytea[])::text[] as written`,
    heartbeat: `select ${sql.functions.heartbeatMany}($1::uuid[], $2::float8[], $3::uuid[], $4::float8[])::text[] as written`,
  }
}
