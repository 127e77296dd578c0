/** Any harness of a store, with the encryption over its store: what the port promises, the encrypted store promises. */
import type { StoreHarness } from '@latchkey/conformance'
import { systemClock } from '../../src/ports/clock.ts'
import { createKeyring } from '../../src/engine/sealed/keyring.ts'
import { sealedStore } from '../../src/engine/sealed/store.ts'
import { underA } from './keys.ts'

export async function sealedHarness<H extends StoreHarness>(harness: H | Promise<H>): Promise<H> {
  const below = await harness
  return { ...below, open: async () => sealedStore(await below.open(), createKeyring(underA, systemClock)) }
}
