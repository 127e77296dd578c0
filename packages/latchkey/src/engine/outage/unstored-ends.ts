/**
 * Ends of work that the store did not take in time: held in memory, under their leases, and stored when the store is back.
 * So an outage leaves no row `unknown` whose process survived and knows the answer.
 */
import type { Claim, OwnerResult } from '../../ports/store.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import { backgroundRetry } from './background-retry.ts'
import type { Lease } from '../run/lease.ts'
import type { AfterOutage } from './uncertain-claims.ts'
import type { Waiters } from '../run/admit.ts'

export interface UnstoredEnd {
  readonly claim: Claim
  readonly operation: string
  /** About how much memory it takes. */
  readonly bytes: number
  /** Renewed until the end is stored or the maximum hold is over, and ended here. Absent: the claim is lost, and the end is evidence. */
  readonly lease: Lease | undefined
  /** The retries stop after this: by then the row's recovery has moved it. */
  readonly holdMsMax: number
  readonly write: () => Promise<OwnerResult>
}

export interface UnstoredEnds {
  readonly size: () => number
  /** Room for further ends. */
  readonly bytesLeft: () => number
  /** False: there is no room, and that is reported. The caller then still has to end the lease. */
  keep(end: UnstoredEnd): boolean
  /** Resolves when nothing is left. */
  flush(): Promise<void>
  /** Drops what is left, and returns how many ends that was. */
  lose(): number
}

/** Many more than handlers run at once in one process. */
const endsMax = 1_000
/** With answers of the largest stored size (1 MiB), sixty-four of them; with usual ones a thousand take a fraction of it. */
const bytesMax = 64 * 1_024 * 1_024
/** Written together: enough to fill a batch of the store, few enough not to overload one that is just back. */
const togetherMax = 32
/** As often as an open circuit admits a probe. */
const outagePauseMs = 1_000

/** A process with nothing else to do waits for about a lease; `close` waits longer. */
const keepAliveMs = 30_000

interface HeldEnd extends UnstoredEnd {
  readonly sinceMs: number
}

export function unstoredEnds<Tx>(after: AfterOutage<Tx> & { readonly waiters: Waiters }): UnstoredEnds {
  const { calls, clock, telemetry, closing, waiters } = after
  /** The one that was tried last comes last. */
  const ends = new Set<HeldEnd>()
  const retry = backgroundRetry({ clock, turn, closing })
  let bytes = 0

  async function turn(): Promise<number | undefined> {
    if (ends.size === 0) return undefined
    if (!calls.circuit.admits()) return outagePauseMs
    const batch = [...ends].slice(0, togetherMax)
    const written = await Promise.all(batch.map(store))
    return written.every(result => result === 'failed') ? outagePauseMs : 0
  }

  async function store(end: HeldEnd): Promise<OwnerResult | 'failed'> {
    const about = { operation: end.operation, identity: end.claim.id }
    const written = await calls.call('finish', end.write).catch(() => 'failed' as const)
    if (written === 'failed') return failed(end)
    drop(end)
    if (written === 'claim-lost') telemetry.count('claim_lost', about)
    else telemetry.report('an outcome that could not be stored in time is stored now', about)
    waiters.wake(end.claim.id)
    return written
  }

  function failed(end: HeldEnd): 'failed' {
    ends.delete(end)
    if (clock.monotonicMs() - end.sinceMs < end.holdMsMax) {
      ends.add(end)
      return 'failed'
    }
    drop(end)
    reportLost(telemetry, end, 'could not be stored within holdMsMax')
    return 'failed'
  }

  function drop(end: HeldEnd): void {
    ends.delete(end)
    bytes -= end.bytes
    end.lease?.end()
  }

  return {
    size: () => ends.size,
    bytesLeft: () => bytesMax - bytes,
    keep(end) {
      if (closing.aborted || ends.size >= endsMax || bytes + end.bytes > bytesMax) {
        reportLost(telemetry, end, 'could not be stored, and there is no memory left to hold it')
        return false
      }
      ends.add({ ...end, sinceMs: clock.monotonicMs() })
      if (end.lease !== undefined) end.lease.isHandedOver = true
      bytes += end.bytes
      retry.wake(keepAliveMs)
      return true
    },
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
  telemetry.report(`the outcome ${why}: the row is left to its recovery`, { operation, identity: claim.id })
}
