/** Workers on a memory store with a fake clock: rows in every state, and recorded telemetry. */
import { createLatchkey, type Latchkey } from '../../src/engine/latchkey.ts'
import { identify, singleTenant } from '../../src/engine/request.ts'
import type { Recovery, RowState, State, Store } from '../../src/ports/store.ts'
import { memoryStore, type MemoryStore } from '../../src/stores/memory/index.ts'
import { createWorkers, type Workers, type WorkersOptions } from '../../src/workers/index.ts'
import { leapingClock } from '../engine/fake-clock.ts'
import { recordingTelemetry } from '../engine/fixture.ts'

export interface Scene {
  readonly clock: ReturnType<typeof leapingClock>
  readonly store: Store
  readonly telemetry: ReturnType<typeof recordingTelemetry>
  readonly latchkey: Latchkey<unknown, unknown>
  workers(options?: WorkersOptions): Workers
  /** A row in a state, with a lease of 1 s and a retention of 10 s. Returns its id. */
  row(key: string, state: State, recovery?: Recovery): Promise<string>
  stateOf(id: string): Promise<RowState | undefined>
}

/** `over`: makes another store of it. */
export function scene({ over }: { readonly over?: (store: MemoryStore) => Store } = {}): Scene {
  const clock = leapingClock()
  const inMemory = memoryStore({ clock })
  const store: Store = over?.(inMemory) ?? inMemory
  const telemetry = recordingTelemetry()
  const latchkey = createLatchkey({ store, scope: singleTenant, telemetry })
  return {
    clock,
    store,
    telemetry,
    latchkey,
    workers: options => createWorkers(latchkey, options),
    row: (key, state, recovery) => makeRow(store, { key, state, recovery }),
    stateOf: async id => (await store.read(id))?.state,
  }
}

const outcome = { status: 201, headers: [], body: new Uint8Array(), version: 0 }

async function makeRow(
  store: Store,
  { key, state, recovery = 'hold' }: { key: string; state: State; recovery: Recovery | undefined },
): Promise<string> {
  const identity = identify({ scope: 'acme', operation: 'payments.create', key })
  const claimed = await store.claim({
    identity,
    claimId: crypto.randomUUID(),
    fingerprint: new Uint8Array([1]),
    recovery,
    leaseMs: 1_000,
    expiresInMs: 10_000,
    description: undefined,
  })
  if (claimed.kind !== 'won') throw new Error(`${key} is taken`)
  if (state === 'completed') await store.complete(claimed.claim, outcome, 10_000)
  if (state === 'unknown' || state === 'failed_retryable')
    await store.fail(claimed.claim, { to: state, errorCode: 'test', dueInMs: 0 })
  return identity.id
}
