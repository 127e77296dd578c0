import { afterEach, describe, expect, it, vi } from 'vitest'
import { createLatchkey } from '../../engine/latchkey.ts'
import { singleTenant } from '../../engine/request.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { idempotent } from '../fetch/index.ts'
import { mergeHeaders } from './answers/merge-headers.ts'
import { addedHeaders } from './exchange.ts'

describe('headers set after Latchkey began', () => {
  it('are the new, the changed and the appended ones', () => {
    const before = [
      ['X-Outer', '1'],
      ['Vary', 'Origin'],
      ['Cache-Control', 'private'],
    ] as const
    const after = [
      ['x-outer', '1'],
      ['Vary', 'Origin'],
      ['Vary', 'Accept'],
      ['Cache-Control', 'no-cache'],
      ['ETag', '"1"'],
    ] as const
    expect(addedHeaders(before, after)).toEqual([
      ['Vary', 'Accept'],
      ['Cache-Control', 'no-cache'],
      ['ETag', '"1"'],
    ])
  })
})

describe('an answer of ours on top of what outer middleware set', () => {
  it('replaces a name, and adds to a field that grows without repeating a value', () => {
    const outer = [
      ['Content-Type', 'text/plain'],
      ['Vary', 'Origin'],
      ['X-Outer', '1'],
    ] as const
    const own = [
      ['content-type', 'application/json'],
      ['Vary', 'Accept'],
      ['vary', 'Origin'],
    ] as const
    expect(mergeHeaders(outer, own)).toEqual([
      ['Vary', 'Origin'],
      ['X-Outer', '1'],
      ['content-type', 'application/json'],
      ['Vary', 'Accept'],
    ])
  })
})

describe('answers', () => {
  afterEach(() => void vi.useRealTimers())

  function ask() {
    const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant })
    const handler = idempotent(
      latchkey.guarded('orders.create', { onFailure: 'rerun' }),
      async () => new Response('ok'),
    )
    const request = new Request('http://shop.example/orders', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
    return Promise.resolve(handler(request)).then(response => response.text())
  }

  it('of one turn of the event loop are sent at its end, together', async () => {
    const seen: string[] = []
    const all = [ask(), ask(), ask()].map(one => one.then(text => seen.push(text)))
    for (let tick = 0; tick < 100; tick++) await Promise.resolve()
    expect(seen).toEqual([])
    await new Promise(resolve => setImmediate(resolve))
    expect(seen).toEqual(['ok', 'ok', 'ok'])
    await Promise.all(all)
  })

  it('are sent in a test that replaces the timers', async () => {
    vi.useFakeTimers({ toFake: ['setImmediate'] })
    expect(await ask()).toBe('ok')
  })
})
