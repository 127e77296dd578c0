/**
 * How work ended, where the store could not be told in time: kept in memory, under its lease, and stored when the store is back.
 * So an outage leaves nothing `unknown` whose process lived and knows the answer.
 */
import type { Claim, OwnerResult } from '../../ports/store.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import { backgroundRetry } from './background-retry.ts'
import type { Lease } from '../run/lease.ts'
import type { AfterOutage } from './uncertain-claims.ts'
import type { Waiters } from '../run/waiters.ts'

export interface UnstoredEnd {
  readonly claim: Claim
  readonly operation: string
  /** What it takes of memory, about. */
  readonly bytes: number
  /** Renewed until the end is stored or the maximum hold is over, and ended here. Absent: the claim is lost, and this is evidence. */
  readonly lease: Lease | undefined
  /** It is given up after this: the row has gone by its recovery, and its owner has tried long enough. */
  readonly holdMsMax: number
  readonly write: () => Promise<OwnerResult>
}

export interface UnstoredEnds {
  readonly size: () => number
  /** For one more end. */
  readonly bytesLeft: () => number
  /** False: there is no room, and that is reported. The lease is then still the caller's. */
  keep(end: UnstoredEnd): boolean
  /** An end is kept here under this lease. */
  holds(lease: Lease): boolean
  /** Resolves when nothing is left. */
  flush(): Promise<void>
  /** Gives up what is left, and says how much that was. */
  lose(): number
}

/** Many more than handlers run at once in one process. */
const endsMax = 1_000
/** With answers of the largest stored size (1 MiB), sixty-four of them; with usual ones a thousand take a fraction of it. */
const bytesMax = 64 * 1_024 * 1_024
/** Written together: enough to fill a batch of the store, few enough not to meet its recovery as a crowd. */
const togetherMax = 32
/** As often as an open circuit lets somebody try. */
const outagePauseMs = 1_000

/** A process with nothing else to do waits for about a lease; who wants to wait longer calls `close`. */
const keepAliveMs = 30_000

interface Kept extends UnstoredEnd {
  readonly sinceMs: number
}

export function unstoredEnds<Tx>(after: AfterOutage<Tx> & { readonly waiters: Waiters }): UnstoredEnds {
  const { calls, clock, telemetry, closing, waiters } = after
  /** The one that was tried last is the last to be tried again. */
  const ends = new Set<Kept>()
  const leases = new Set<Lease | undefined>()
  const retry = backgroundRetry({ clock, turn, closing })
  let bytes = 0

  async function turn(): Promise<number | undefined> {
    if (ends.size === 0) return undefined
    if (!calls.circuit.admits()) return outagePauseMs
    const batch = [...ends].slice(0, togetherMax)
    const written = await Promise.all(batch.map(store))
    return written.every(result => result === 'failed') ? outagePauseMs : 0
  }

  async function store(end: Kept): Promise<OwnerResult | 'failed'> {
    const about = { operation: end.operation, identity: end.claim.id }
    const written = await calls.call('finish', end.write).catch(() => 'failed' as const)
    if (written === 'failed') return failed(end)
    drop(end)
    if (written === 'claim-lost') telemetry.count('claim_lost', about)
    else telemetry.report('what could not be stored in time is stored now', about)
    waiters.wake(end.claim.id)
    return written
  }

  function failed(end: Kept): 'failed' {
    ends.delete(end)
    if (clock.monotonicMs() - end.sinceMs < end.holdMsMax) {
      ends.add(end)
      return 'failed'
    }
    drop(end)
    reportLost(telemetry, end, 'could not be stored within the maximum hold')
    return 'failed'
  }

  function drop(end: Kept): void {
    ends.delete(end)
    bytes -= end.bytes
    leases.delete(end.lease)
    end.lease?.end()
  }

  return {
    size: () => ends.size,
    bytesLeft: () => bytesMax - bytes,
    keep(end) {
      if (closing.aborted || ends.size >= endsMax || bytes + end.bytes > bytesMax) {
        reportLost(telemetry, end, 'could be neither stored nor kept in memory')
        return false
      }
      ends.add({ ...end, sinceMs: clock.monotonicMs() })
      leases.add(end.lease)
      bytes += end.bytes
      retry.wake(keepAliveMs)
      return true
    },
    holds: lease => leases.has(lease),
    async flush() {
      if (ends.size > 0) await retry.finish()
    },
    lose() {
      const lost = ends.size
      for (const end of ends) drop(end)
      return lost
    },
  }
}

function reportLost(telemetry: Telemetry, { operation, claim }: UnstoredEnd, why: string): void {
  telemetry.report(`how the work ended ${why}: the row goes by its recovery`, { operation, identity: claim.id })
}
