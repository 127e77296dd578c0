/** Latchkeys with limits, and what their callers are answered. */
import { afterEach } from 'vitest'
import { createLatchkey, type Latchkey, type LatchkeyOptions } from '../../src/engine/latchkey.ts'
import type { LimitOptions } from '../../src/engine/limits/limits.ts'
import { memoryStore, type MemoryStore, type MemoryTx } from '../../src/stores/memory/index.ts'
import { leapingClock } from '../engine/fake-clock.ts'
import { recordingTelemetry } from '../engine/fixture.ts'

const open: Latchkey<MemoryTx, string>[] = []
afterEach(async () => {
  for (const latchkey of open.splice(0)) await latchkey.close()
})

export interface Scene {
  readonly clock: ReturnType<typeof leapingClock>
  readonly store: MemoryStore
  readonly telemetry: ReturnType<typeof recordingTelemetry>
  readonly latchkey: Latchkey<MemoryTx, string>
  /** As another process on the same store, under the same limits unless told otherwise. */
  another(over?: Partial<LatchkeyOptions<MemoryTx, string>>): Latchkey<MemoryTx, string>
}

export function scene(limits: LimitOptions): Scene {
  const clock = leapingClock()
  const store = memoryStore({ clock })
  const telemetry = recordingTelemetry()
  const another: Scene['another'] = (over = {}) => {
    const latchkey = createLatchkey<MemoryTx, string>({ store, scope: one => one, clock, telemetry, limits, ...over })
    open.push(latchkey)
    return latchkey
  }
  return { clock, store, telemetry, latchkey: another(), another }
}

export type Run = (request: { scope: string; key: string; input: unknown }, handler: () => boolean) => Promise<unknown>
export type Ask = (key: string, over?: { scope?: string; input?: unknown }) => Promise<string | undefined>

/** `ran`, `replayed`, or the code of the refusal. */
export function asker(run: Run): Ask {
  return async (key, { scope = 'acme', input = 1 } = {}) => {
    let ran = false
    try {
      await run({ scope, key, input }, () => (ran = true))
      return ran ? 'ran' : 'replayed'
    } catch (error) {
      return (error as { code?: string }).code
    }
  }
}

/** One after the other: how many ran. */
export async function ranOf(ask: Ask, keys: readonly string[]): Promise<number> {
  let ran = 0
  for (const key of keys) if ((await ask(key)) === 'ran') ran += 1
  return ran
}

export const keysOf = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => `${prefix} ${n}`)
