/**
 * The scopes with the most duplicates, in bounded memory (Metwally's space-saving): a new scope takes the place of the one with the least,
 * and inherits its rank. A scope with more than a hundredth of all duplicates is always in the list.
 */
import type { Attributes, Metric } from '../ports/telemetry.ts'

/** So many label values a metric may have without hurting the system that stores it. */
const scopesMax = 100

/** Of one scope, since it entered the list. */
export interface ScopeDuplicates {
  readonly scope: string
  readonly replays: number
  readonly inProgress: number
  readonly misuse: number
  /** How many more there may have been before it entered. */
  readonly missedMax: number
}

export interface TopScopes {
  count(metric: Metric, attributes: Attributes): void
  /** Those with the most first. */
  list(): readonly ScopeDuplicates[]
}

interface Counted {
  scope: string
  replays: number
  inProgress: number
  misuse: number
  missedMax: number
}

export function topScopes(): TopScopes {
  const counted = new Map<string, Counted>()

  function find(scope: string): Counted {
    const known = counted.get(scope)
    if (known !== undefined) return known
    const least = counted.size < scopesMax ? undefined : leastOf(counted.values())
    if (least !== undefined) counted.delete(least.scope)
    const missedMax = least === undefined ? 0 : rankOf(least)
    const entered = { scope, replays: 0, inProgress: 0, misuse: 0, missedMax }
    counted.set(scope, entered)
    return entered
  }

  return {
    count(metric, { scope }) {
      if (scope === undefined) return
      if (metric === 'reserve.replay') find(scope).replays += 1
      else if (metric === 'reserve.in_progress') find(scope).inProgress += 1
      else if (metric === 'reserve.key_misuse') find(scope).misuse += 1
    },
    list: () => [...counted.values()].map(one => ({ ...one })).toSorted((a, b) => rankOf(b) - rankOf(a)),
  }
}

function rankOf({ replays, inProgress, misuse, missedMax }: Counted | ScopeDuplicates): number {
  return replays + inProgress + misuse + missedMax
}

function leastOf(all: Iterable<Counted>): Counted | undefined {
  let least: Counted | undefined
  for (const one of all) if (least === undefined || rankOf(one) < rankOf(least)) least = one
  return least
}
