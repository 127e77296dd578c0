/**
 * A scope that keeps sending after many refusals gets the next ones late. A client that sends as fast as it is refused would otherwise take the processor from all
 * others, without a single key being granted to it.
 */
import { type Clock, sleep } from '../../ports/clock.ts'
import { TokenBuckets } from './token-buckets.ts'

/** For each scope: as many as a well-behaved client never sees. */
export const refusalsAtOncePerMinute = 600
/** A client on one connection is then refused four times a second. */
export const lateByMs = 250
/** Beyond it a refusal is sent at once: a held one holds its request in memory. */
const heldMax = 1_000

export class RefusalPace {
  private readonly clock: Clock
  private readonly atOnce: TokenBuckets
  private held = 0

  constructor(clock: Clock) {
    this.clock = clock
    this.atOnce = new TokenBuckets(refusalsAtOncePerMinute, clock)
  }

  /** Resolves when the refusal may be sent. */
  async wait(scope: string): Promise<void> {
    if (this.atOnce.take(scope) || this.held >= heldMax) return
    this.held += 1
    await sleep(this.clock, lateByMs)
    this.held -= 1
  }
}
