/** What `check` reports about the database. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { own, request, seen } from '../fixture.ts'

export const checkCases: readonly StoreCase[] = [
  {
    name: 'finds itself fit where it is open, as often as it is asked, or says nothing about it',
    async run(harness) {
      const store = await harness.open()
      const checked = await Promise.all([store.check?.(), store.check?.()])
      checked.push(await store.check?.())
      for (const result of checked) assert.deepEqual(result, store.check && { kind: 'fit' })
      await own(store, 'a')
      assert.deepEqual(await store.check?.(), store.check && { kind: 'fit' })
      seen(await store.claim(request('a')))
    },
  },
]
