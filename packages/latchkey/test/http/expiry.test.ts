import { expect, it } from 'vitest'
import { createLatchkey } from '../../src/engine/latchkey.ts'
import { idempotent } from '../../src/http/fetch/index.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { systemClock } from '../../src/ports/clock.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'

const hour = 3_600_000
const field = 'Idempotency-Key-Expires-At'

interface Asked {
  readonly store?: Store
  readonly expiresHeader?: boolean
  readonly status?: number
}

/** The field on the first answer and on its replay. */
async function twice({ store = memoryStore(), expiresHeader = true, status = 201 }: Asked): Promise<(string | null)[]> {
  const latchkey = createLatchkey<unknown, Request>({ store, scope: () => 'acme', http: { expiresHeader } })
  const operation = latchkey.guarded('orders.create', { onFailure: 'rerun' })
  const handle = idempotent(operation, () => new Response('done', { status }))
  const ask = async () => {
    const init = { method: 'POST', headers: { 'Idempotency-Key': 'k' } }
    return (await handle(new Request('http://shop.test/orders', init))).headers.get(field)
  }
  const told = [await ask(), await ask()]
  await latchkey.close()
  return told
}

it('says the row’s own instant on the first answer and on the replay, by the store’s clock', async () => {
  const ahead: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + 5 * hour }
  const store = memoryStore({ clock: ahead })
  const [first, again] = await twice({ store })
  const [row] = (await store.list({ limit: 1 })).records
  expect([first, again]).toEqual([new Date(row?.expiresAtMs ?? 0).toUTCString(), first])
})

it('says nothing on the first answer rather than something else, where the row cannot be read', async () => {
  const inner = memoryStore()
  const store = { ...inner, read: () => Promise.reject(new Error('connection refused')) }
  expect(await twice({ store })).toEqual([null, expect.stringContaining('GMT')])
})

it('says nothing of an answer that is not stored', async () => {
  expect(await twice({ status: 503 })).toEqual([null, null])
})

it('reads nothing where nobody wants to know', async () => {
  let reads = 0
  const inner = memoryStore()
  const store = {
    ...inner,
    read(id: string) {
      reads += 1
      return inner.read(id)
    },
  }
  expect(await twice({ store, expiresHeader: false })).toEqual([null, null])
  expect(reads).toBe(0)
})
