import { expect, it } from 'vitest'
import { createWorkers } from 'latchkey/workers'
import { functionTarget } from 'latchkey/outbox'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { fromAToB, underA, underB } from './keys.ts'
import { marker, openShop } from './scene.ts'

it('parks a message that does not open, delivers it to nobody, and delivers it when its key is back', async () => {
  const store = memoryStore()
  const writer = openShop(store, underA)
  await writer.runAll()
  const delivered: string[] = []
  const relay = (shop: typeof writer) =>
    createWorkers(shop.latchkey, {
      only: ['relay'],
      relay: {
        everyMs: 20,
        targets: {
          parcels: functionTarget(({ payload }) => void delivered.push(Buffer.from(payload).toString())),
        },
      },
    })
  const without = openShop(store, underB)
  const blind = relay(without)
  blind.start()
  await expect.poll(() => store.outbox.parked({ limit: 10 })).toHaveLength(1)
  await blind.stop()
  const [parked] = (await without.store.outbox?.parked({ limit: 10 })) ?? []
  expect(parked).toMatchObject({
    cause: 'message-unreadable',
    unreadable: expect.stringContaining('key a'),
    headers: {},
  })
  expect(parked?.payload).toHaveLength(0)
  expect(delivered).toEqual([])

  const again = openShop(store, fromAToB)
  await again.store.outbox?.redrive(parked?.position ?? '', { by: 'on-call', reason: 'the key is back' })
  const seeing = relay(again)
  seeing.start()
  await expect.poll(() => delivered).toEqual([JSON.stringify({ to: marker })])
  await seeing.stop()
  for (const { latchkey } of [writer, without, again]) await latchkey.close()
})
