/** The fault that is switched on, and for how much longer. */
import type { Fault, FaultKind } from './charge.ts'

export interface Faults {
  current(): Fault | null
  /** Replaces the fault that is on; null: none. */
  set(fault: Fault | null): void
  /** The fault for this request; counts one of its requests down. */
  strike(): Fault | null
}

const kinds: ReadonlySet<string> = new Set<FaultKind>([
  'slow',
  'hold',
  'lose-response',
  'fail-after',
  'refuse',
  'late',
  'swallow',
  'fall',
  'down',
])

export function faultSwitch(): Faults {
  let fault: Fault | null = null
  let left = 0
  return {
    current: () => fault,
    set(next) {
      fault = next
      left = next?.requests ?? Infinity
    },
    strike() {
      const struck = fault
      left -= 1
      if (left <= 0) fault = null
      return struck
    },
  }
}

/** Undefined: not a fault. `null`, or `{"kind":"none"}`, switches the fault off. */
export function parseFault(value: unknown): Fault | null | undefined {
  if (value === null) return null
  if (typeof value !== 'object') return undefined
  // Each member is checked below, before its type is relied on.
  const { kind, requests, ms } = value as Record<string, unknown>
  if (kind === 'none') return null
  if (typeof kind !== 'string' || !kinds.has(kind) || !isCount(requests) || !isCount(ms)) return undefined
  return {
    kind: kind as FaultKind, // one of `kinds`
    ...(requests === undefined ? {} : { requests }),
    ...(ms === undefined ? {} : { ms }),
  }
}

function isCount(value: unknown): value is number | undefined {
  return value === undefined || (typeof value === 'number' && value > 0 && Number.isFinite(value))
}
