/** Whatever a command did, it did by the table of transitions. */
import assert from 'node:assert/strict'
import { type Actor, type Place, transitions } from '../../src/engine/rules/transitions.ts'
import type { StoreModel } from './store-model.ts'
import { keys } from './store-names.ts'

export interface Standing {
  readonly place: Place
  readonly fence: number
}

export function standings({ rows }: StoreModel): ReadonlyMap<string, Standing> {
  return new Map(
    keys.map(key => {
      const row = rows.get(key)
      return [key, { place: row?.state ?? 'none', fence: row?.fence ?? 0 }]
    }),
  )
}

/** The model is compared with the store after every command, so what is legal for one is what the other did. */
export function assertLegal(before: ReadonlyMap<string, Standing>, model: StoreModel, by: readonly Actor[]): void {
  for (const [key, after] of standings(model)) {
    const { place = 'none', fence = 0 } = before.get(key) ?? {}
    if (after.place === place && after.fence === fence) continue
    const fenceMoved = after.fence > fence ? 'rises' : 'stays'
    const legal = transitions.some(
      row => row.from === place && row.to === after.place && row.fence === fenceMoved && isBy(row.by, by),
    )
    assert.ok(legal, `${key}: no ${by.join(' or ')} may bring ${place} to ${after.place}, the fence ${fenceMoved}`)
  }
}

function isBy(allowed: readonly Actor[], by: readonly Actor[]): boolean {
  return by.some(actor => allowed.includes(actor))
}
