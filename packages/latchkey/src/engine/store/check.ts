/** Whether the store is fit for requests: checked from the start, and no longer once it is. */
import type { Clock } from '../../ports/clock.ts'
import { LatchkeyError } from '../../ports/errors.ts'
import type { Store, StoreFault } from '../../ports/store.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import { within } from './call.ts'

/** A request waits no longer for the check: after this the request finds out itself whether the store answers. */
const checkMsMax = 2_000
/** A fix (migrate, a GRANT) is noticed without a restart, and a store that stays unfit is not asked by every request. */
const recheckAfterMs = 1_000

export interface StoreChecks {
  /** From then on there is nothing to check. */
  readonly passed: boolean
  /** Why a request is refused now. Undefined: no fault is known; whether the store answers, the request itself finds out. */
  fault(): Promise<LatchkeyError | undefined>
}

export interface StoreCheckOptions {
  readonly store: Pick<Store, 'name' | 'check'>
  readonly clock: Clock
  readonly telemetry: Telemetry
}

export function storeChecks({ store, clock, telemetry }: StoreCheckOptions): StoreChecks {
  let fault: LatchkeyError | undefined
  let told: string | undefined
  let silent = false
  let running: Promise<void> | undefined
  let askedAtMs = Number.NEGATIVE_INFINITY

  function found(next: StoreFault | undefined): void {
    silent = false
    if (next === undefined) told = undefined
    checks.passed = next === undefined
    fault = next && new LatchkeyError(`store-${next.kind}`, next.message)
    // migrate() often comes after the construction: missing tables are news when a request needs them.
    if (fault?.code !== 'store-not-migrated') tell()
  }

  /** Each fault once, however many requests meet it. */
  function tell(): void {
    if (fault === undefined || fault.message === told) return
    told = fault.message
    telemetry.report(`the ${store.name} store is not fit for requests`, { error: fault, detail: fault.code })
  }

  function warn(warning: string): void {
    telemetry.report(`the ${store.name} store: ${warning}`, { detail: store.name })
  }

  function start(): void {
    running = within(clock, checkMsMax, async () => (await store.check?.()) ?? { kind: 'fit' as const })
      .then(result => {
        found(result.kind === 'fit' ? undefined : result)
        if (result.kind === 'fit' && result.warning !== undefined) warn(result.warning)
      })
      .catch(() => {
        // It did not answer, which says nothing about its fitness.
        silent = true
        fault = undefined
      })
      .finally(() => (running = undefined))
  }

  const checks = {
    passed: store.check === undefined,
    async fault() {
      if (running !== undefined && !silent) await running
      if (checks.passed) return undefined
      // A fault that was found before the first request may be fixed since: migrate() often comes after the construction.
      if (running === undefined && clock.monotonicMs() - askedAtMs >= recheckAfterMs) {
        askedAtMs = clock.monotonicMs()
        start()
      }
      if (running !== undefined && !silent) await running
      tell()
      return fault
    },
  }
  if (!checks.passed) start()
  return checks
}
