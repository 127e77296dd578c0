/** The server that holds the application's keys, and what is read from it at the end. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Rows } from '../evidence.ts'
import type { Run } from '../app/runs.ts'

export interface KeyServer {
  readonly url: string
  /** As they are now, without the rows that an enemy damaged: those are not the application's fault. */
  rows(): Promise<Rows>
  /** The runs whose transactions committed. Other runs are in the file that handlers write. */
  committed(): Promise<readonly Run[]>
  stop(): Promise<void>
}

/** Tenants whose rows an enemy damages have this in their scope. */
export const damagedScope = 'enemy-bad-rows'

/** Waits until all rows are at rest, for at most `limitMs`. */
export async function settledRows(keys: KeyServer, limitMs: number): Promise<Rows> {
  const endMs = performance.now() + limitMs
  for (;;) {
    const found = await keys.rows()
    if (found.unfinished === 0 || performance.now() > endMs) return found
    await delay(500)
  }
}
