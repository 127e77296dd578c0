/** The trail of one Latchkey: what is recorded, how long it is kept, and where it is handed to. */
import type { Clock } from '../../ports/clock.ts'
import { errorText, misconfigured } from '../../ports/errors.ts'
import type { AuditLine, AuditRecords } from '../../ports/faculties/audit-records.ts'
import type { Store } from '../../ports/store.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import type { ExecuteRequest } from '../answer.ts'
import { TokenBuckets } from '../limits/token-buckets.ts'
import { within } from '../store/call.ts'

export interface AuditOptions {
  /**
   * `changes`: a line for every execution that ended, in the same commit: completed, failed, parked, unknown, and settled later. `all`: also a
   * line for every key that was used again for another request, and refused; at most 60 a minute for each scope and process. No default.
   */
  readonly records: 'changes' | 'all'
  /** How long a line is kept. Default 400 days: a year, and time to look at it. At least a day. Not with a `sink`. */
  readonly retentionMs?: number
  /**
   * Takes the lines elsewhere, oldest first, up to 500 at a time, from one process at a time. When it resolves they are deleted; when it rejects, or
   * has not resolved after a minute, they stay, and it is called again with them. A line may come twice, with the same `lineId`. Default: lines stay
   * in the store. Workers call it, or `maintenance` where none run.
   */
  readonly sink?: (lines: readonly AuditLine[]) => Promise<void>
}

export interface Trail {
  /** Never rejects: a line that could not be written is reported. */
  addMisuse(request: Pick<ExecuteRequest, 'identity' | 'fingerprint'>): Promise<void>
  /** What is past its retention goes, or what is there is handed to the sink, `limit` lines at most. Rejects when the sink or the store does. */
  turn(limit: number): Promise<'more' | 'idle'>
  /** Resolves when no line of a misuse is being written. */
  flush(): Promise<void>
}

interface TrailParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Of a call that a request waits for. */
  readonly timeoutMs: number
}

const day = 24 * 3_600_000
const retentionMsDefault = 400 * day
/** As the stores have it: nothing younger is deleted by age. */
const retentionMsMin = day

/** Enough to see who does it; a client in a loop must not fill the table. */
const misusesPerMinute = 60

/** No request waits for it. Not through the circuit breaker: a right that only the trail lacks must not refuse requests. */
const turnMsMax = 30_000
const sinkMsMax = 60_000
/** Longer than a sink may take and its lines may take to be deleted: no other process has them meanwhile. */
const leaseMs = sinkMsMax + 2 * turnMsMax

/** The store with lines, for `createLatchkey`. */
export function recordingStore<Tx>(store: Store<Tx>, audit: AuditOptions | undefined): Store<Tx> {
  return audit === undefined ? store : recordsOf(store).recording()
}

export function recordsOf<Tx>(store: Store<Tx>): AuditRecords<Tx> {
  if (store.auditRecords !== undefined) return store.auditRecords
  throw misconfigured(
    `audit: the ${store.name} store cannot record lines (Store.auditRecords): use postgresStore, sqliteStore or memoryStore, or leave audit out`,
  )
}

export function trailOf<Tx>(store: Store<Tx>, audit: AuditOptions | undefined, parts: TrailParts): Trail | undefined {
  if (audit === undefined) return undefined
  const records = recordsOf(store)
  const { sink, retentionMs = retentionMsDefault } = checked(audit)
  const { clock } = parts
  const expire = (limit: number) => within(clock, turnMsMax, () => records.expire({ olderThanMs: retentionMs, limit }))
  return {
    ...misuseLines(records, audit, parts),
    async turn(limit) {
      const done = sink === undefined ? await expire(limit) : await handOver(records, { sink, limit, clock })
      return done < limit ? 'idle' : 'more'
    },
  }
}

function checked(audit: AuditOptions): AuditOptions {
  const { records, retentionMs, sink } = audit
  if (records === undefined) throw misconfigured(`audit needs records: 'changes' or 'all'`)
  if (retentionMs !== undefined && sink !== undefined)
    throw misconfigured('audit: give retentionMs or a sink, not both: with a sink, a line stays until the sink has it')
  if (retentionMs !== undefined && retentionMs < retentionMsMin)
    throw misconfigured(`audit.retentionMs must be at least ${retentionMsMin}, one day (got ${retentionMs})`)
  return audit
}

type Sink = NonNullable<AuditOptions['sink']>

interface HandOver {
  readonly sink: Sink
  readonly limit: number
  readonly clock: Clock
}

/** At least once: the lines are deleted only after the sink has resolved. */
async function handOver<Tx>(records: AuditRecords<Tx>, { sink, limit, clock }: HandOver): Promise<number> {
  const taken = await within(clock, turnMsMax, () => records.take({ limit, leaseMs }))
  if (taken === undefined) return 0
  const { lines } = taken
  try {
    await within(clock, sinkMsMax, async () => sink(lines))
  } catch (cause) {
    // Without it the lease ends by itself.
    await within(clock, turnMsMax, () => records.giveBack(taken)).catch(() => undefined)
    const message = `the sink of the audit trail did not take ${lines.length} lines, which stay and are handed over again: ${errorText(cause)}`
    throw new Error(message, { cause })
  }
  await within(clock, turnMsMax, () => records.handedOver(taken))
  return lines.length
}

function misuseLines<Tx>(
  records: AuditRecords<Tx>,
  audit: AuditOptions,
  { clock, telemetry, timeoutMs }: TrailParts,
): Pick<Trail, 'addMisuse' | 'flush'> {
  const buckets = new TokenBuckets(misusesPerMinute, clock)
  const underWay = new Set<Promise<void>>()
  async function add({ identity, fingerprint }: Parameters<Trail['addMisuse']>[0]): Promise<void> {
    const { id, operation, scope } = identity
    if (!buckets.take(scope)) {
      const message = `more than ${misusesPerMinute} keys of a scope were reused within a minute: the trail has no line of the others`
      return telemetry.report(message, { operation, scope })
    }
    await within(clock, timeoutMs, () => records.addMisuse({ identity, fingerprint })).catch((error: unknown) => {
      telemetry.report('the line of a refused misuse could not be written', { operation, identity: id, error })
    })
  }
  return {
    async addMisuse(request) {
      if (audit.records !== 'all') return
      const adding = add(request)
      underWay.add(adding)
      await adding.finally(() => underWay.delete(adding))
    },
    flush: async () => void (await Promise.all(underWay)),
  }
}
