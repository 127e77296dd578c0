/** Of a store that records lines: every transition that ends an execution has left one line, and nothing else has left any. */
import assert from 'node:assert/strict'
import type { AuditLine } from '../../src/ports/faculties/audit-records.ts'
import type { Store } from '../../src/ports/store.ts'
import { type Standing, standings } from './legal-transitions.ts'
import type { StoreModel } from './store-model.ts'
import { idOf, keys } from './store-names.ts'

export interface TrailBefore {
  readonly standings: ReadonlyMap<string, Standing>
  /** By key; undefined: the store records none. */
  readonly lengths: ReadonlyMap<string, number> | undefined
}

export async function trailBefore(model: StoreModel, store: Store): Promise<TrailBefore> {
  if (store.auditRecords?.recording() !== store) return { standings: standings(model), lengths: undefined }
  const lengths = new Map<string, number>()
  for (const key of keys) lengths.set(key, (await linesOf(store, key)).length)
  return { standings: standings(model), lengths }
}

export async function assertTrail(before: TrailBefore, model: StoreModel, store: Store): Promise<void> {
  if (before.lengths === undefined) return
  for (const [key, after] of standings(model)) {
    const added = (await linesOf(store, key)).slice(before.lengths.get(key))
    const expected = lineOf(before.standings.get(key), after, model.rows.get(key)?.parked === true)
    const shown = added.map(({ what, fence }) => `${what} ${fence}`)
    assert.deepEqual(shown, expected === undefined ? [] : [`${expected} ${after.fence}`], `lines of ${key}`)
  }
}

async function linesOf(store: Store, key: string): Promise<readonly AuditLine[]> {
  return (await store.auditRecords?.page({ id: idOf(key), limit: 1_000 }))?.lines ?? []
}

function lineOf(before: Standing | undefined, after: Standing, parked: boolean): AuditLine['what'] | undefined {
  if (before?.place === after.place && before.fence === after.fence) return undefined
  if (after.place === 'completed' || after.place === 'unknown') return after.place
  if (after.place === 'failed_retryable') return parked ? 'parked' : 'failed'
  return after.place === 'pending' && before?.place === 'unknown' ? 'resumed' : undefined
}
