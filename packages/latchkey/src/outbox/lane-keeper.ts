/** Keeps a lane leased while its messages are delivered, and says when it is lost. */
import type { Clock } from '../ports/clock.ts'
import type { LaneLease, Outbox } from '../ports/outbox.ts'

export interface KeptLane {
  readonly lease: LaneLease
  /** Aborted when another relay has the lane, or may have it: deliveries of this one then only make copies. */
  readonly signal: AbortSignal
  /** The lease was renewed by a write that was sent at that moment, on the monotonic clock. */
  renewed(sentAtMs: number): void
  stop(): void
}

export interface KeepOptions {
  readonly outbox: Outbox<unknown>
  readonly clock: Clock
  readonly lease: LaneLease
  /** Before the lease was asked for: the store's lease ends no earlier than counted from here. */
  readonly askedAtMs: number
  readonly leaseMs: number
  /** The caller's: gives up, too. */
  readonly signal: AbortSignal | undefined
}

export function keepLane({ outbox, clock, lease, askedAtMs, leaseMs, signal }: KeepOptions): KeptLane {
  const lost = new AbortController()
  let endsAtMs = askedAtMs + leaseMs
  let stopped = false
  let cancel = () => {}
  const giveUp = () => lost.abort()
  signal?.addEventListener('abort', giveUp, { once: true })

  const renew = async () => {
    const sentAtMs = clock.monotonicMs()
    // A store that does not answer is asked again, until the lease is over by our own clock.
    const result = await outbox.renewLane(lease, leaseMs).catch(() => 'not-renewed' as const)
    if (stopped) return
    if (result === 'lease-lost') return giveUp()
    if (result === 'written') endsAtMs = sentAtMs + leaseMs
    schedule()
  }
  const schedule = () => {
    if (clock.monotonicMs() >= endsAtMs) return giveUp()
    // A third: two renewals may fail before the lease runs out.
    cancel = clock.after(Math.min(leaseMs / 3, endsAtMs - clock.monotonicMs()), () => void renew())
  }
  schedule()

  return {
    lease,
    signal: lost.signal,
    renewed: sentAtMs => void (endsAtMs = Math.max(endsAtMs, sentAtMs + leaseMs)),
    stop() {
      stopped = true
      cancel()
      signal?.removeEventListener('abort', giveUp)
    },
  }
}
