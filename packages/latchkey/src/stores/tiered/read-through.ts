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

/** A look-up that others of this process wait for. It ends with a finished row, or with nothing. */
interface Flight {
  readonly beganAtMs: number
  readonly landed: Promise<KeyRecord | undefined>
}

/**
 * Many requests for one row that the cache does not have ask the database once: the others wait for the first one, and have its answer if
 * that is a finished row. If it is not, each asks for itself, because each may be granted.
 */
export function readThrough(tier: Tier, clock: Clock): ReadThrough {
  const flights = new Map<string, Flight>()

  return async (identity, ask) => {
    if (!tier.covers(identity.operation)) return ask()
    const { id } = identity
    const ahead = flights.get(id)
    // One that began longer ago may know less than what was done since.
    if (ahead !== undefined && clock.monotonicMs() - ahead.beganAtMs < periodMs) {
      const record = await ahead.landed
      return record === undefined ? ask() : { kind: 'seen', record: copyOf(record) }
    }
    let land: (record: KeyRecord | undefined) => void = () => {}
    const flight: Flight = {
      beganAtMs: clock.monotonicMs(),
      landed: new Promise(resolve => {
        land = resolve
      }),
    }
    flights.set(id, flight)
    try {
      return await fly(id, ask, land)
    } finally {
      if (flights.get(id) === flight) flights.delete(id)
      land(undefined)
    }
  }

  async function fly<R extends Seen | { readonly kind: 'won' | 'queued' }>(
    id: string,
    ask: () => Promise<R>,
    land: (record: KeyRecord | undefined) => void,
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

/** Each caller may change the bytes it gets. */
function copyOf(record: KeyRecord): KeyRecord {
  if (record.state === 'unreadable' || record.outcome?.body === undefined) return record
  return { ...record, outcome: { ...record.outcome, body: Buffer.from(record.outcome.body) } }
}
