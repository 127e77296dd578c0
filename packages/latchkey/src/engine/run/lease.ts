/** Renews a claim while its handler runs, and signals the handler when the claim is lost. */
import { LatchkeyError } from '../../ports/errors.ts'
import { append, remove } from '../../ports/linked-list.ts'
import type { Claim } from '../../ports/store.ts'
import type { Core, Heartbeat } from '../runtime.ts'

export interface Lease {
  /** Fires when the claim is lost, or held for too long. Made when it is first read: most handlers never do. */
  signal(): AbortSignal
  /** At least this much is left, by this process's monotonic clock, counted from before the last renewal was sent. */
  leftMs(): number
  /** The end of the work could not be stored in time: `unstored-ends.ts` stores it, and then ends this lease. */
  isHandedOver: boolean
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
  const loss = lossOf(options.operation)
  const startedAtMs = clock.monotonicMs()
  let renewedAtMs = options.claimedAtMs
  let ended = false

  // A third of the lease: two beats may fail and a third still arrives in time. Short handlers send none.
  const beatMs = leaseMs / 3
  let cancelBeat = clock.after(beatMs, beat)
  // Most handlers have ended before the first beat: only then is the second timer set, unless it would be the first to fire.
  let cancelHold = options.holdMsMax > beatMs ? undefined : limitHold()
  const heartbeat: Heartbeat = { stop: stopEarly, before: undefined, next: undefined }
  append(core.heartbeats, heartbeat)

  function limitHold(): () => void {
    const leftMs = options.holdMsMax - (clock.monotonicMs() - startedAtMs)
    return clock.after(Math.max(0, leftMs), () => {
      lose(`held for longer than holdMsMax (${options.holdMsMax} ms)`)
    })
  }

  // One renewal at a time: the next is planned when this one has ended.
  function beat(): void {
    const sentAtMs = clock.monotonicMs()
    cancelHold ??= limitHold()
    core.calls
      .call('heartbeat', () => core.store.heartbeat(claim, leaseMs))
      .then(result => {
        if (result !== 'claim-lost') renewedAtMs = sentAtMs
        else if (!ended) lose('the claim was taken over while the handler ran')
      })
      // The store may be back for the next beat; until then the fence protects the row.
      .catch(() => {})
      .finally(() => {
        if (!ended) cancelBeat = clock.after(Math.max(0, beatMs - (clock.monotonicMs() - sentAtMs)), beat)
      })
  }

  function lose(why: string): void {
    stopBeating()
    loss.report(why)
  }

  function stopBeating(): void {
    ended = true
    cancelBeat()
  }

  /** At `close`, under a handler that is still running. No beat will set the limit any more. */
  function stopEarly(): void {
    stopBeating()
    cancelHold ??= limitHold()
  }

  return {
    signal: loss.signal,
    leftMs: () => renewedAtMs + leaseMs - clock.monotonicMs(),
    isHandedOver: false,
    end() {
      stopBeating()
      cancelHold?.()
      remove(core.heartbeats, heartbeat)
      const usedMs = clock.monotonicMs() - renewedAtMs
      core.telemetry.observe('lease.used_ratio', usedMs / leaseMs, { operation: options.operation })
    },
  }
}

/** The signal of a claim, made when it is first read. If the claim was lost before, it has fired already. */
function lossOf(operation: string): { signal(): AbortSignal; report(message: string): void } {
  let watched: AbortController | undefined
  let lostBy: LatchkeyError | undefined
  return {
    signal() {
      watched ??= new AbortController()
      if (lostBy !== undefined) watched.abort(lostBy)
      return watched.signal
    },
    report(message) {
      lostBy ??= new LatchkeyError('claim-lost', `${operation}: ${message}`)
      watched?.abort(lostBy)
    },
  }
}
