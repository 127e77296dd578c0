/** Renews a claim while its handler runs, and signals the handler when the claim is lost. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { Deadline, Deadlines } from '../../ports/clock.ts'
import type { Claim } from '../../ports/store.ts'
import type { Core } from '../runtime.ts'

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
  /** Called after each renewal. It does not throw. */
  readonly onBeat?: (() => void) | undefined
}

export function holdLease<Tx>(core: Core<Tx>, options: LeaseOptions): Lease {
  return new HeldLease(core, options)
}

/** A class, and its own deadline: every request makes one. */
class HeldLease<Tx> implements Lease, Deadline {
  before: Deadline | undefined = undefined
  next: Deadline | undefined = undefined
  dueAtMs = 0
  isHandedOver = false
  private readonly core: Core<Tx>
  private readonly options: LeaseOptions
  private readonly beats: Deadlines
  private readonly startedAtMs: number
  private renewedAtMs: number
  private ended = false
  /** Of a beat after the first. */
  private cancelBeat: (() => void) | undefined = undefined
  private cancelHold: (() => void) | undefined
  private watched: AbortController | undefined = undefined
  private lostBy: LatchkeyError | undefined = undefined

  constructor(core: Core<Tx>, options: LeaseOptions) {
    this.core = core
    this.options = options
    this.startedAtMs = core.clock.monotonicMs()
    this.renewedAtMs = options.claimedAtMs
    this.beats = core.deadlines.of(beatMsOf(options))
    this.beats.add(this)
    // Most handlers have ended before the first beat: only then is the second timer set, unless it would be the first to fire.
    this.cancelHold = options.holdMsMax > beatMsOf(options) ? undefined : this.limitHold()
  }

  /** Made when it is first read. If the claim was lost before, it has fired already. */
  signal(): AbortSignal {
    this.watched ??= new AbortController()
    if (this.lostBy !== undefined) this.watched.abort(this.lostBy)
    return this.watched.signal
  }

  leftMs(): number {
    return this.renewedAtMs + this.options.leaseMs - this.core.clock.monotonicMs()
  }

  end(): void {
    const { core, options } = this
    this.stopBeating()
    this.cancelHold?.()
    const usedMs = core.clock.monotonicMs() - this.renewedAtMs
    core.telemetry.observe('lease.used_ratio', usedMs / options.leaseMs, { operation: options.operation })
  }

  private limitHold(): () => void {
    const { clock } = this.core
    const { holdMsMax } = this.options
    const leftMs = holdMsMax - (clock.monotonicMs() - this.startedAtMs)
    return clock.after(Math.max(0, leftMs), () => this.lose(`held for longer than holdMsMax (${holdMsMax} ms)`))
  }

  /** One renewal at a time: the next is planned when this one has ended. After `close`, none: a handler that still runs has its limit. */
  fallDue(): void {
    const { calls, clock, closing, store } = this.core
    const { claim, leaseMs } = this.options
    const sentAtMs = clock.monotonicMs()
    this.cancelHold ??= this.limitHold()
    if (closing.signal.aborted) return
    calls
      .call('heartbeat', () => store.heartbeat(claim, leaseMs))
      .then(result => {
        if (result === 'claim-lost') {
          if (!this.ended) this.lose('the claim was taken over while the handler ran')
          return
        }
        this.renewedAtMs = sentAtMs
        if (!this.ended) this.options.onBeat?.()
      })
      // The store may be back for the next beat; until then the fence protects the row.
      .catch(() => {})
      .finally(() => {
        if (this.ended) return
        const sinceMs = clock.monotonicMs() - sentAtMs
        this.cancelBeat = clock.after(Math.max(0, beatMsOf(this.options) - sinceMs), () => this.fallDue())
      })
  }

  private lose(why: string): void {
    this.stopBeating()
    this.lostBy ??= new LatchkeyError('claim-lost', `${this.options.operation}: ${why}`)
    this.watched?.abort(this.lostBy)
  }

  private stopBeating(): void {
    this.ended = true
    this.beats.remove(this)
    this.cancelBeat?.()
  }
}

/** A third of the lease: two beats may fail and a third still arrives in time. Short handlers send none. */
function beatMsOf({ leaseMs }: LeaseOptions): number {
  return leaseMs / 3
}
