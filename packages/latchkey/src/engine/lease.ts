/** Keeps a claim alive while its handler runs, and tells the handler when the claim is gone. */
import { LatchkeyError } from '../ports/errors.ts'
import type { Claim } from '../ports/store.ts'
import type { Core } from './core.ts'

export interface Lease {
  readonly signal: AbortSignal
  /** What is surely left, by this process's monotonic clock, counted from before the last renewal was sent. */
  leftMs(): number
  end(): void
}

export interface LeaseOptions {
  readonly claim: Claim
  readonly leaseMs: number
  readonly holdMsMax: number
  /** Monotonic time from before the claim was sent. */
  readonly claimedAtMs: number
  readonly operation: string
}

export function holdLease<Tx>(core: Core<Tx>, options: LeaseOptions): Lease {
  const { clock } = core
  const { claim, leaseMs } = options
  const lost = new AbortController()
  let renewedAtMs = options.claimedAtMs
  let ended = false

  // A third of the lease: two beats may fail and a third still arrives in time. Short handlers never write one.
  let cancelBeat = clock.after(leaseMs / 3, beat)
  const cancelHold = clock.after(options.holdMsMax, () => {
    stopBeating()
    lost.abort(
      new LatchkeyError('claim-lost', `${options.operation}: held for longer than holdMsMax (${options.holdMsMax} ms)`),
    )
  })
  core.heartbeats.add(stopBeating)

  // One renewal at a time: the next is planned when this one has ended.
  function beat(): void {
    const sentAtMs = clock.monotonicMs()
    core.calls
      .call('heartbeat', () => core.store.heartbeat(claim, leaseMs))
      .then(result => {
        if (result === 'claim-lost') return lose()
        renewedAtMs = sentAtMs
      })
      // The store may be back for the next beat; until then the fence protects the row.
      .catch(() => {})
      .finally(() => {
        if (!ended) cancelBeat = clock.after(Math.max(0, leaseMs / 3 - (clock.monotonicMs() - sentAtMs)), beat)
      })
  }

  function lose(): void {
    if (ended) return
    stopBeating()
    lost.abort(new LatchkeyError('claim-lost', `${options.operation}: the claim was taken over while the handler ran`))
  }

  function stopBeating(): void {
    ended = true
    cancelBeat()
  }

  return {
    signal: lost.signal,
    leftMs: () => renewedAtMs + leaseMs - clock.monotonicMs(),
    end() {
      stopBeating()
      cancelHold()
      core.heartbeats.delete(stopBeating)
      const usedMs = clock.monotonicMs() - renewedAtMs
      core.telemetry.observe('lease.used_ratio', usedMs / leaseMs, { operation: options.operation })
    },
  }
}
