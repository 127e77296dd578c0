/** A request for a row: from the cache, or from the store, whose answer then goes into the cache. */
import type { Clock } from '../../ports/clock.ts'
import type { Identity, KeyRecord } from '../../ports/store.ts'
import { isLasting } from './cache/fill.ts'
import { periodMs } from './cache/periods.ts'
import type { Tier } from './cache/tier.ts'

interface Seen {
  readonly kind: 'seen'
  readonly record: KeyRecord
}

export type ReadThrough = <R extends Seen | { readonly kind: 'won' | 'queued' }>(
  identity: Identity,
  ask: () => Promise<R>,
) => Promise<R | Seen>

/** A look-up that others of this process wait for. */
interface Flight {
  /** A finished row, or nothing. Undefined: it began so long ago that it may know less than what was done since. */
  join(): Promise<KeyRecord | undefined> | undefined
  /** Nobody waits for it any more. */
  land(record: KeyRecord | undefined): void
}

/**
 * How long a request may wait here before the store is asked. The first one may wait for its turn in the store's own queue; those behind it will wait
 * there themselves, and both together would look like a store that does not answer.
 */
export const waitMsMax: number = periodMs

/**
 * Many requests for one row that the cache does not have ask the database once: the others wait for the first one, and have its answer if
 * that is a finished row. If it is not, or does not come soon, each asks for itself, because each may be granted.
 */
export function readThrough(tier: Tier, clock: Clock): ReadThrough {
  const flights = new Map<string, Flight>()

  return async (identity, ask) => {
    if (!tier.covers(identity.operation)) return ask()
    const { id } = identity
    const ahead = flights.get(id)?.join()
    if (ahead !== undefined) {
      const record = await ahead
      return record === undefined ? ask() : { kind: 'seen', record: copyOf(record) }
    }
    const flight = takeOff(clock)
    flights.set(id, flight)
    try {
      return await fly(id, ask, flight.land)
    } finally {
      if (flights.get(id) === flight) flights.delete(id)
      flight.land(undefined)
    }
  }

  async function fly<R extends Seen | { readonly kind: 'won' | 'queued' }>(
    id: string,
    ask: () => Promise<R>,
    land: Flight['land'],
  ): Promise<R | Seen> {
    const found = await tier.lookUp(id)
    if (found.kind === 'hit') {
      land(isLasting(found.record) ? found.record : undefined)
      return { kind: 'seen', record: found.record }
    }
    if (!found.isSure) land(undefined)
    const result = await ask()
    if (result.kind !== 'seen') return result
    tier.offer(found.ticket, result.record)
    land(isLasting(result.record) ? result.record : undefined)
    return result
  }
}

function takeOff(clock: Clock): Flight {
  const endsAtMs = clock.monotonicMs() + waitMsMax
  let arrive: (record: KeyRecord | undefined) => void = () => {}
  let stopTimer: (() => void) | undefined
  const landed = new Promise<KeyRecord | undefined>(resolve => {
    arrive = resolve
  })
  return {
    join() {
      const leftMs = endsAtMs - clock.monotonicMs()
      if (leftMs <= 0) return undefined
      // Most look-ups are nobody's business but their own, and need no timer.
      stopTimer ??= clock.after(leftMs, () => arrive(undefined))
      return landed
    },
    land(record) {
      stopTimer?.()
      arrive(record)
    },
  }
}

/** Each caller may change the bytes it gets. */
function copyOf(record: KeyRecord): KeyRecord {
  if (record.state === 'unreadable' || record.outcome?.body === undefined) return record
  return { ...record, outcome: { ...record.outcome, body: Buffer.from(record.outcome.body) } }
}
