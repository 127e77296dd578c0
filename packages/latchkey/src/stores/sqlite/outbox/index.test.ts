import { describe, expect, it } from 'vitest'
import { outboxHarness } from '../../../../test/sqlite/outbox-harness.ts'
import { parkOne } from '../../../../test/outbox/park-one.ts'
import { runOutboxCases } from '@latchkey/conformance'

describe('the outbox on SQLite', () => {
  runOutboxCases(outboxHarness, it, ['several-writers'])

  it('skips nothing when the entry of the audit cannot be written', async () => {
    const harness = await outboxHarness()
    const store = await harness.open()
    const position = await parkOne(store)
    // No operator has such a source: the column refuses it.
    const by = { by: 'ann', reason: 'why', source: null as never, requestId: 'r' }
    await expect(store.admin?.skip({ position, by })).rejects.toThrow()
    expect((await store.outbox?.parked({ limit: 10 }))?.map(each => each.position)).toEqual([position])
    await harness.close()
  })
})
