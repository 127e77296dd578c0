/** Renews the lease of a lane while its messages are delivered, and aborts when the lane is lost. */
import type { Clock } from '../ports/clock.ts'
import type { LaneLease, Outbox } from '../ports/outbox.ts'

export interface HeldLane {
  readonly lease: LaneLease
  /** Aborted when another relay has, or may have, the lane: further deliveries would only be duplicates. */
  readonly signal: AbortSignal
  /** A write that was sent at this time, on the monotonic clock, renewed the lease. */
  renewed(sentAtMs: number): void
  stop(): void
}

export interface HoldOptions {
  readonly outbox: Outbox<unknown>
  readonly clock: Clock
  readonly lease: LaneLease
  /** When the lease was requested: the store counts it from then or later. */
  readonly askedAtMs: number
  readonly leaseMs: number
  /** The caller's: aborts as well. */
  readonly signal: AbortSignal | undefined
}

export function holdLane({ outbox, clock, lease, askedAtMs, leaseMs, signal }: HoldOptions): HeldLane {
  const lost = new AbortController()
  let endsAtMs = askedAtMs + leaseMs
  let stopped = false
  let cancel = () => {}
  const giveUp = () => lost.abort()
  signal?.addEventListener('abort', giveUp, { once: true })

  const renew = async () => {
    const sentAtMs = clock.monotonicMs()
    // A renewal that fails is repeated until the lease has expired by our own clock.
    const result = await outbox.renewLane(lease, leaseMs).catch(() => 'not-renewed' as const)
    if (stopped) return
    if (result === 'lease-lost') return giveUp()
    if (result === 'written') endsAtMs = sentAtMs + leaseMs
    schedule()
  }
  const schedule = () => {
    if (clock.monotonicMs() >= endsAtMs) return giveUp()
    // A third: two renewals may fail before the lease expires.
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
