/** Questions about unknown rows, each with a number that fences it. */
import type { Lookup, LookupClaim, Reconciliation, UnknownSummary } from '../../src/ports/reconciliation.ts'
import type { OwnerResult } from '../../src/ports/store.ts'
import { type ModelDoubt, type ModelRow, openEffect } from './model-row.ts'
import type { Tables } from './model-tables.ts'

/** The look-up is the row's last one, and nobody settled the row since. */
export function isUnderLook(row: ModelRow, { id, fence, look }: LookupClaim): boolean {
  return row.identity.id === id && row.fence === fence && row.doubt?.look === look
}

type Asking = Parameters<Reconciliation['lookups']>[0]

export function lookups({ rows, now, put }: Tables) {
  const unknown = () => [...rows.values()].flatMap(row => (row.doubt === undefined ? [] : [{ row, doubt: row.doubt }]))

  function grant(row: ModelRow, doubt: ModelDoubt, leaseMs: number): Lookup {
    const { identity, fence, createdAtMs, attempts } = row
    const [look, tries] = [doubt.look + 1, doubt.tries + 1]
    const granted = { ...doubt, look, tries, lookUpAtMs: now() + leaseMs, looking: true }
    put(identity.id, { ...row, doubt: granted }, 'reconciler', 'look-up')
    const open = openEffect(row)
    const effect = open && { position: open.position, name: open.name, epoch: open.epoch }
    const unknownForMs = now() - doubt.sinceMs
    return { id: identity.id, identity, fence, look, tries, unknownForMs, createdAtMs, attempts, effect }
  }

  function held(lookup: LookupClaim): { row: ModelRow; doubt: ModelDoubt } | undefined {
    const row = rows.get(lookup.id)
    return row?.doubt !== undefined && isUnderLook(row, lookup) ? { row, doubt: row.doubt } : undefined
  }

  return {
    lookups({ operation, firstInMs, leaseMs, limit }: Asking): readonly Lookup[] {
      return unknown()
        .map(one => ({ ...one, dueAtMs: one.doubt.lookUpAtMs ?? one.doubt.sinceMs + firstInMs }))
        .filter(({ row, dueAtMs }) => row.identity.operation === operation && !row.parked && dueAtMs <= now())
        .sort((left, right) => left.dueAtMs - right.dueAtMs)
        .slice(0, limit)
        .map(({ row, doubt }) => grant(row, doubt, leaseMs))
    },
    postpone(lookup: LookupClaim, inMs: number): OwnerResult {
      const found = held(lookup)
      if (found === undefined || found.row.parked) return 'claim-lost'
      // The same word again after a lost reply.
      if (!found.doubt.looking) return 'written'
      const doubt = { ...found.doubt, looking: false, lookUpAtMs: now() + inMs }
      put(lookup.id, { ...found.row, doubt }, 'reconciler', 'postpone')
      return 'written'
    },
    giveUp(lookup: LookupClaim, cause: string): OwnerResult {
      const found = held(lookup)
      if (found === undefined) return 'claim-lost'
      if (!found.doubt.looking) return found.row.parked ? 'written' : 'claim-lost'
      const doubt = { ...found.doubt, looking: false }
      put(lookup.id, { ...found.row, parked: true, errorCode: cause, doubt }, 'reconciler', 'give-up')
      return 'written'
    },
    nextLookUpInMs(id: string): number | undefined {
      const row = rows.get(id)
      return row?.doubt?.lookUpAtMs === undefined || row.parked ? undefined : row.doubt.lookUpAtMs - now()
    },
    unknowns(): readonly UnknownSummary[] {
      const by = new Map<string, UnknownSummary>()
      for (const { row, doubt } of unknown()) {
        const { operation } = row.identity
        const { count, parked, oldestMs } = by.get(operation) ?? { count: 0, parked: 0, oldestMs: 0 }
        const ageMs = Math.max(oldestMs, now() - doubt.sinceMs)
        by.set(operation, { operation, count: count + 1, parked: parked + (row.parked ? 1 : 0), oldestMs: ageMs })
      }
      return [...by.values()]
    },
  }
}
