/** Exports for later on a real store: kept by a request, run by whoever plays the worker. */
import { createLatchkey, type DeferredOperation, type EffectOptions, json, type Latchkey, type Store } from 'latchkey'
import { engine } from '../../src/engine/internal.ts'
import { openPlace, type Place } from '../processes/database.ts'

export interface Export {
  readonly label: string
}

export interface Stage {
  readonly place: Place
  readonly latchkey: Latchkey<unknown, unknown>
  readonly report: DeferredOperation<Export>
  /** What the next calls of the provider do; then they answer. */
  readonly faults: (() => Promise<unknown>)[]
  readonly calls: string[]
  ask(label: string): ReturnType<DeferredOperation<Export>['run']>
  /** What a worker does: everything that is due, once. */
  work(): Promise<unknown[]>
  close(): Promise<void>
}

export interface StageOptions {
  readonly deadlineMs?: number
  /** Replaces members of the store. */
  readonly over?: (store: Store) => Partial<Store>
}

const upload: EffectOptions = { timeoutMs: 1_000 }

export async function openStage(name: string, { deadlineMs = 3_600_000, over }: StageOptions = {}): Promise<Stage> {
  const place = await openPlace(name)
  const store = { ...place.store, ...over?.(place.store) }
  const latchkey = createLatchkey<unknown, unknown>({ store, scope: () => 'acme', storeTimeoutMs: 5_000 })
  const faults: Stage['faults'] = []
  const calls: string[] = []
  const report = latchkey.deferred<Export>('exports.create', { deadlineMs }, async (x, { label }) => {
    await place.countExecution(label)
    await x.phase('collect', tx => place.insert(tx, `${label}/collect`))
    const { file } = await x.effect('upload', upload, async ({ key }) => {
      calls.push(key)
      await faults.shift()?.()
      return { file: `file-${label}` }
    })
    await x.phase('write', tx => place.insert(tx, `${label}/write`))
    return json(201, { label, file })
  })
  return {
    place,
    latchkey,
    report,
    faults,
    calls,
    ask: label => report.run({ scope: 'acme', key: label, input: { label } }),
    async work() {
      const ends: unknown[] = []
      for (const row of await place.store.resumable({ limit: 100 })) ends.push(await report[engine].resume(row))
      return ends
    },
    async close() {
      await latchkey.close()
      await place.close()
    },
  }
}

export function rowOf(label: string): { scope: string; operation: string; key: string } {
  return { scope: 'acme', operation: 'exports.create', key: label }
}
