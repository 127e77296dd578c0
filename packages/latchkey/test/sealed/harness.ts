/** Any harness of a store, with the encryption over its store: what the port promises, the encrypted store promises. */
import type { StoreHarness, StoreSelection } from '@latchkey/conformance'
import { systemClock } from '../../src/ports/clock.ts'
import { createKeyring } from '../../src/engine/sealed/keyring.ts'
import { sealedStore } from '../../src/engine/sealed/store.ts'
import { underA } from './keys.ts'

/** Values are replaced in the store below, by `rewrap`. */
export const sealedSelection: StoreSelection = {
  faculties: [
    'transactions',
    'steps',
    'phases',
    'outbox',
    'reconciliation',
    'ledgers',
    'erasure',
    'quotas',
    'inbox',
    'references',
    'admin',
  ],
  elsewhere: ['outbox'],
}

export async function sealedHarness<H extends StoreHarness>(harness: H | Promise<H>): Promise<H> {
  const below = await harness
  return { ...below, open: async () => sealedStore(await below.open(), createKeyring(underA, systemClock)) }
}
