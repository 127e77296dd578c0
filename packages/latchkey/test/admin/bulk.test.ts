import { expect, it } from 'vitest'
import { createAdmin } from '../../src/admin/index.ts'
import { createLatchkey, silentTelemetry } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { parkOne } from '../outbox/park-one.ts'

const operator = { who: { name: 'ann', role: 'operator' }, source: 'cli' } as const
const reason = 'the consumer is repaired'

it('sends the messages of a plan again as one act of a minute, however many they are', async () => {
  const store = memoryStore()
  const latchkey = createLatchkey({ store, scope: () => 'acme', maintenance: false, telemetry: silentTelemetry })
  const admin = createAdmin({ latchkey, actsPerMinute: 1 })
  const ids = [await parkOne(store), await parkOne(store, 'b'), await parkOne(store, 'c')]
  const made = await admin.planBulk(operator, { act: 'redrive', reason, ids })
  if (made.kind !== 'planned') throw new Error(made.kind)
  const { bulkId } = made.plan
  await admin.startBulk(operator, { bulkId })
  expect(await admin.bulkRows(operator, bulkId)).toMatchObject({ value: ids.map(id => ({ id, result: 'done' })) })
  expect(await store.outbox?.parked({ limit: 10 })).toEqual([])
  expect(await admin.redriveOutbox(operator, { position: ids[0] ?? '', reason })).toMatchObject({
    kind: 'too-many-acts',
  })
  await latchkey.close()
})
