/** Stops asking a store that is down, so that its recovery is not met by a crowd and callers are answered at once. */
import type { Clock } from '../../ports/clock.ts'

export interface Circuit {
  /** Closed, or open and this call is the probe. */
  admits(): boolean
  succeeded(): void
  /** `cause`: what all the calls that failed together have in common. It counts once. */
  failed(cause?: unknown): void
}

/** Five in a row: one lost connection fails a handful of calls at once and should not close the door. */
const failuresMax = 5
/** One probe a second finds a recovered store quickly and costs it nothing. */
const probeEveryMs = 1_000

export function circuit(clock: Clock): Circuit {
  let failures = 0
  let nextProbeAtMs = 0
  let lastCause: unknown
  return {
    admits() {
      if (failures < failuresMax) return true
      if (clock.monotonicMs() < nextProbeAtMs) return false
      nextProbeAtMs = clock.monotonicMs() + probeEveryMs
      return true
    },
    succeeded() {
      failures = 0
      lastCause = undefined
    },
    failed(cause) {
      // A batch that is lost fails each of its members with the same error.
      if (cause !== undefined && cause === lastCause) return
      lastCause = cause
      failures += 1
      if (failures >= failuresMax) nextProbeAtMs = clock.monotonicMs() + probeEveryMs
    },
  }
}
