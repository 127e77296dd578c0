import { expect, it } from 'vitest'
import { createLatchkey, silentTelemetry, type Telemetry } from '../../src/index.ts'
import { memoryStore, type MemoryTx } from '../../src/stores/memory/index.ts'
import { withoutFaculties } from '../memory/fixture.ts'
import { underA } from '../sealed/keys.ts'

const request = { scope: 'acme', key: 'k', input: 1 }

function open(over: Partial<Parameters<typeof createLatchkey<MemoryTx>>[0]> = {}) {
  const store = memoryStore()
  return { store, latchkey: createLatchkey({ store, scope: () => 'acme', maintenance: false, ...over }) }
}

/** Messages of reports, with what caused them. */
function reporting(): { readonly told: string[]; readonly telemetry: Telemetry } {
  const told: string[] = []
  return {
    told,
    telemetry: { ...silentTelemetry, report: (message, { error }) => void told.push(`${message}: ${error}`) },
  }
}

it('finds a guarded row by what its handler called it, also where the handler did not wait for it', async () => {
  const { latchkey } = open()
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  await pay.run(request, async x => {
    await x.reference('ch_1')
    void x.reference('order 7')
    return 'paid'
  })
  const id = latchkey.identify({ scope: 'acme', operation: 'pay', key: 'k' })
  for (const reference of ['ch_1', 'order 7'])
    expect(await latchkey.find({ reference })).toMatchObject([{ id, state: 'completed', outcome: undefined }])
  expect(await latchkey.find({ reference: 'ch_2' })).toEqual([])
  expect((await latchkey.inspect({ id })).references.map(({ text }) => text)).toEqual(['ch_1', 'order 7'])
})

it('finds an unknown row by the reference that its handler recorded before it failed', async () => {
  const { latchkey } = open()
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  const failed = pay.run(request, async x => {
    await x.reference('ch_1')
    throw new Error('read timeout')
  })
  await expect(failed).rejects.toThrow()
  expect(await latchkey.find({ reference: 'ch_1' })).toMatchObject([{ state: 'unknown' }])
})

it('finds the row of a key by its parts, and nothing for a key that was never used', async () => {
  const { latchkey } = open()
  await latchkey.guarded('pay', { onFailure: 'hold' }).run(request, async () => 'paid')
  const parts = { scope: 'acme', operation: 'pay', key: 'k' }
  expect(await latchkey.find(parts)).toMatchObject([{ operation: 'pay', state: 'completed' }])
  expect(await latchkey.find({ ...parts, key: 'other' })).toEqual([])
})

it('stores the references of an atomic operation with its commit, and none of a rollback', async () => {
  const { latchkey } = open()
  const order = latchkey.atomic('order')
  await order.run(request, x => x.reference('order 7'))
  const failed = order.run({ ...request, key: 'other' }, async x => {
    await x.reference('order 8')
    throw new Error('no stock')
  })
  await expect(failed).rejects.toThrow()
  expect(await latchkey.find({ reference: 'order 7' })).toMatchObject([{ state: 'completed' }])
  expect(await latchkey.find({ reference: 'order 8' })).toEqual([])
})

it('finds phased work by a reference, also after it was recorded in a run before', async () => {
  const { latchkey } = open()
  const ship = latchkey.phased('ship', { version: 1, steps: 'effects' }, async (x, _input: number) => {
    const parcel = await x.effect('send', { timeoutMs: 1_000, dedup: { windowMs: 60_000 } }, async () => ({
      id: 'p_1',
    }))
    await x.reference(parcel.id)
    return { status: 200, headers: [], body: undefined, version: 1 }
  })
  await ship.run(request)
  expect(await latchkey.find({ reference: 'p_1' })).toMatchObject([{ operation: 'ship', state: 'completed' }])
})

it('keeps neither the text nor a plain hash of it where encryption is on, and finds it all the same', async () => {
  const { store, latchkey } = open({ encryption: underA })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  await pay.run(request, x => x.reference('ch_1'))
  const [found] = await latchkey.find({ reference: 'ch_1' })
  expect(found).toMatchObject({ state: 'completed' })
  expect((await latchkey.inspect({ id: found?.id ?? '' })).references).toMatchObject([{ text: 'ch_1' }])
  const stored = await store.references.of(found?.id ?? '')
  expect(JSON.stringify(stored)).not.toContain('ch_1')
  expect(await store.references.find('ch_1', { limit: 10 })).toEqual([])
})

it('hashes and seals by rewrap what was stored before encryption was switched on', async () => {
  const { store, latchkey: plain } = open()
  await plain.guarded('pay', { onFailure: 'hold' }).run(request, x => x.reference('ch_1'))
  const sealed = createLatchkey({ store, scope: () => 'acme', maintenance: false, encryption: underA })
  expect(await sealed.find({ reference: 'ch_1' })).toMatchObject([{ operation: 'pay' }])
  await sealed.rewrap()
  expect(await store.references.find('ch_1', { limit: 10 })).toEqual([])
  expect(await sealed.find({ reference: 'ch_1' })).toMatchObject([{ operation: 'pay' }])
})

it.each([
  ['an empty text', ''],
  ['a text that is too long', 'x'.repeat(201)],
  ['half a surrogate pair', '\ud800'],
])('reports %s and lets the handler end as it would', async (_, text) => {
  const { told, telemetry } = reporting()
  const { latchkey } = open({ telemetry })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  expect(await pay.run(request, async x => (await x.reference(text), 'paid'))).toBe('paid')
  expect(told).toEqual([expect.stringContaining('a reference must be 1 to 200 characters')])
})

it('reports the eleventh reference of a row, and stores ten', async () => {
  const { told, telemetry } = reporting()
  const { latchkey } = open({ telemetry })
  await latchkey.guarded('pay', { onFailure: 'hold' }).run(request, async x => {
    for (let n = 0; n < 11; n += 1) await x.reference(`r ${n}`)
  })
  expect(told).toEqual([expect.stringContaining('10 references')])
  const row = await latchkey.inspect({ scope: 'acme', operation: 'pay', key: 'k' })
  expect(row.references).toHaveLength(10)
})

it('reports on a store without references, and completes the row', async () => {
  const { told, telemetry } = reporting()
  const store = withoutFaculties(memoryStore())
  const latchkey = createLatchkey({ store, scope: () => 'acme', maintenance: false, telemetry })
  const pay = latchkey.guarded('pay', { onFailure: 'hold' })
  expect(await pay.run(request, async x => (await x.reference('ch_1'), 'paid'))).toBe('paid')
  expect(told).toEqual([expect.stringContaining('has no references')])
  await expect(latchkey.find({ reference: 'ch_1' })).rejects.toThrow('has no references')
})
