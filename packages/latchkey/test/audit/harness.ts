/** Any harness of a store, with lines recorded: what the port promises, the store that records promises. */
import type { StoreHarness } from '@latchkey/conformance'

export async function recordingHarness<H extends StoreHarness>(harness: H | Promise<H>): Promise<H> {
  const below = await harness
  return {
    ...below,
    async open() {
      const { auditRecords } = await below.open()
      if (auditRecords === undefined) throw new Error('the store records no lines')
      return auditRecords.recording()
    },
  }
}
