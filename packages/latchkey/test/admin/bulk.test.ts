import { expect, it } from 'vitest'
import { createAdmin, type Actor, type AdminOptions } from '../../src/admin/index.ts'
import { createLatchkey, silentTelemetry, type Store } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { fakeClock } from '../engine/fake-clock.ts'
import { parkEach } from '../outbox/park-one.ts'

const by: Actor = { who: { name: 'ann', role: 'operator' }, source: 'cli' }
const reason = 'outage'

function open(over: (store: Store) => Partial<Store> = () => ({}), options: AdminOptions = {}) {
  const clock = fakeClock()
  const own = memoryStore({ clock })
  const store = { ...own, ...over(own) }
  const latchkey = createLatchkey({ store, scope: () => 'acme', clock, maintenance: false, telemetry: silentTelemetry })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  const unknown = async (count: number) => {
    for (let n = 0; n < count; n += 1)
      await pay.run({ scope: 'acme', key: `k${n}`, input: n }, () => Promise.reject(new Error('lost'))).catch(() => {})
  }
  return { clock, store: own, admin: createAdmin({ latchkey, ...options }), unknown }
}

type Admin = ReturnType<typeof open>['admin']

async function planOf(admin: Admin, given: Omit<Parameters<Admin['planBulk']>[1], 'reason'>) {
  const planned = await admin.planBulk(by, { ...given, reason })
  if (planned.kind !== 'planned') throw new Error(planned.kind)
  return planned.plan
}

it('counts as one act of a person, also where it redrives messages', async () => {
  const { admin, store } = open(() => ({}), { actsPerMinute: 1 })
  const ids = await parkEach(store, ['a', 'b', 'c'])
  const { bulkId } = await planOf(admin, { act: 'redrive', ids })
  const results: (string | undefined)[] = []
  await admin.startBulk(by, { bulkId, onRow: ({ result }) => results.push(result) })
  expect(results).toEqual(['done', 'done', 'done'])
  expect(await store.outbox.parked({ limit: 10 })).toEqual([])
})

it('is not planned on a list that was cut off', async () => {
  const { admin, unknown, store } = open(({ admin: own }) => ({
    admin: own && { ...own, work: async () => ({ rows: [], next: undefined, partial: true }) },
  }))
  await unknown(2)
  const planned = admin.planBulk(by, { act: 'take', reason, filter: { kind: 'unknown' } })
  await expect(planned).rejects.toMatchObject({
    code: 'store-unavailable',
    message: expect.stringContaining('too long'),
  })
  expect(await store.admin.entries({ limit: 10 })).toEqual([])
})

it('is continued in the background when the store was away for a moment', async () => {
  let failures = 1
  const { admin, clock, unknown } = open(({ admin: own }) => ({
    admin: own && {
      ...own,
      act: request => (failures-- > 0 ? Promise.reject(new Error('the connection was cut')) : own.act(request)),
    },
  }))
  await unknown(3)
  const { bulkId } = await planOf(admin, { act: 'take', filter: { kind: 'unknown' } })
  let rest: Promise<void> | undefined
  await admin.startBulk(by, { bulkId, inBackground: work => void (rest = work) })
  const isDone = async () => {
    clock.advance(1_000)
    return admin.bulk(by, bulkId)
  }
  await expect.poll(isDone).toMatchObject({ value: { state: 'done', finished: 3 } })
  await rest
  expect(failures).toBeLessThan(0)
  expect(await admin.bulkRows(by, bulkId)).toMatchObject({
    value: Array.from({ length: 3 }, () => ({ result: 'done' })),
  })
})

it('is cancelled with its entry in the audit', async () => {
  const { admin, store, unknown } = open()
  await unknown(1)
  const { bulkId } = await planOf(admin, { act: 'take', filter: { kind: 'unknown' } })
  expect(await admin.cancelBulk(by, { bulkId })).toMatchObject({ kind: 'cancelled', plan: { state: 'cancelled' } })
  expect(await admin.cancelBulk(by, { bulkId })).toMatchObject({ kind: 'invalid' })
  const cancelled = (await store.admin.entries({ limit: 10 })).filter(({ act }) => act === 'bulk.cancel')
  expect(cancelled).toMatchObject([{ by: 'ann', detail: bulkId, refused: undefined }])
})

it('leaves a line in the audit for a single act as well, where what was named is no id', async () => {
  const { admin, store } = open()
  expect(await admin.take(by, { id: 'ch_1', version: '1.1', reason })).toEqual({ kind: 'not-found' })
  const [entry] = await store.admin.entries({ limit: 1 })
  expect(entry).toMatchObject({ by: 'ann', act: 'take', id: undefined, detail: 'ch_1', refused: 'not-found' })
})
