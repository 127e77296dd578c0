import { describe, expect, it } from 'vitest'
import { createLatchkey } from '../../engine/latchkey.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { checkHttp, checkOperation } from './route.ts'

describe('an operation that is handed to an adapter', () => {
  const latchkey = (problemBase?: string) =>
    createLatchkey({
      store: memoryStore(),
      scope: () => 'acme',
      ...(problemBase === undefined ? {} : { http: { problemBase } }),
    })

  it('is taken as it is when nothing is wrong with it', () => {
    checkOperation(latchkey('https://shop.test/problems/').guarded('orders.create', { onFailure: 'rerun' }))
  })

  it('is refused at once when it is none, covers nothing, or names problems by what is no URL', () => {
    // What a caller without types does.
    expect(() => checkOperation({} as never)).toThrow(/needs an operation first/)
    expect(() => checkOperation(latchkey('problems').guarded('orders.create', { onFailure: 'rerun' }))).toThrow(
      /http.problemBase must be an http or https URL in ASCII \(got "problems"\)/,
    )
    expect(() => checkOperation(latchkey().guarded('orders.create', { onFailure: 'rerun', methods: [] }))).toThrow(
      /no request would be covered/,
    )
  })

  it('is refused with a path of its status that does not hold the id or cannot stand in a header', () => {
    checkHttp({ statusPath: id => `https://shop.test/v1/operations/${id}?full=1` })
    for (const path of ['/operations', '/operations/%', '', 'a b']) {
      const statusPath = (id: string) => (path === '/operations' ? path : `${path}ü${id}`)
      expect(() => checkHttp({ statusPath })).toThrow(/http.statusPath must return/)
    }
    expect(() => checkHttp({ statusPath: '/operations' as never })).toThrow(/http.statusPath must return/)
  })
})
