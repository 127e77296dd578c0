/** Targets that look at their broker before the first delivery. */
import { errorText, isLatchkeyError } from '../ports/errors.ts'
import type { RelayTiming, Target } from '../ports/target.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { errorCode } from './attempts.ts'
import type { RelayPolicy } from './policy.ts'

export interface Preparations {
  /** Begins with it if that was not done, or has failed. Never throws, and waits for nothing. */
  begin(target: Target): void
  /** What delivers to it once it is prepared. */
  prepared(target: Target): Pick<Target, 'deliver'>
}

export interface PreparationOptions {
  readonly policy: RelayPolicy
  readonly telemetry: Telemetry
}

export function openPreparations({ policy, telemetry }: PreparationOptions): Preparations {
  const timing: RelayTiming = { retryGapMs: retryGapMs(policy) }
  const begun = new Map<Target, Promise<void>>()
  const done = new WeakSet<Target>()

  async function prepare(target: Target): Promise<void> {
    try {
      // Not in this turn, so that a failure is removed after it was entered.
      await Promise.resolve().then(() => target.prepare?.(timing))
      done.add(target)
    } catch (error) {
      begun.delete(target)
      report(telemetry, target, error)
      throw error
    }
  }

  function begin(target: Target): Promise<void> {
    const known = begun.get(target)
    if (known !== undefined) return known
    const preparing = prepare(target)
    // Deliveries that wait for it see the failure; without one it is reported only.
    preparing.catch(() => undefined)
    begun.set(target, preparing)
    return preparing
  }

  return {
    begin: target => void (target.prepare === undefined || done.has(target) || begin(target)),
    prepared(target) {
      if (target.prepare === undefined || done.has(target)) return target
      return {
        async deliver(message, options) {
          await begin(target)
          return target.deliver(message, options)
        },
      }
    },
  }
}

/** An attempt without an answer, the longest wait, and the lease of a relay that died meanwhile. */
function retryGapMs({ timeoutMs, backoffMsMax, leaseMs }: RelayPolicy): number {
  return timeoutMs + backoffMsMax + leaseMs
}

function report(telemetry: Telemetry, { name }: Target, error: unknown): void {
  // Our own text has no secrets in it; the text of a client may.
  const cause = isLatchkeyError(error) ? errorText(error) : errorCode(error)
  try {
    telemetry.report('an outbox target is not ready', { detail: `${name}: ${cause}` })
  } catch {
    // Telemetry that throws must not stop the relay.
  }
}
