import { describe, expect, it } from 'vitest'
import { createLatchkey } from '../../engine/latchkey.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { corsHeaders } from './cors.ts'

const latchkey = createLatchkey({ store: memoryStore(), scope: (request: Request) => request.url })

describe('cross-origin lists', () => {
  it('allows the key and exposes what a client acts on', () => {
    const { allow, expose } = corsHeaders()
    expect(allow).toEqual(['Idempotency-Key', 'Prefer'])
    expect(expose).toEqual(
      expect.arrayContaining([
        'Idempotent-Replayed',
        'Idempotency-Stored',
        'Latchkey-Retry',
        'Retry-After',
        'Retry-After-Ms',
        'X-Should-Retry',
      ]),
    )
  })

  it('allows the headers that the operations read their keys from, each once', () => {
    const plain = latchkey.guarded('plain', { onFailure: 'rerun' })
    const paypal = latchkey.guarded('paypal', { onFailure: 'rerun', key: { header: 'PayPal-Request-Id' } })
    const again = latchkey.atomic('again', { key: { header: 'PayPal-Request-Id' } })
    const square = latchkey.atomic('square', { key: request => request.url })
    expect(corsHeaders(paypal, again, square).allow).toEqual(['PayPal-Request-Id', 'Prefer'])
    expect(corsHeaders(plain, paypal).allow).toEqual(['Idempotency-Key', 'PayPal-Request-Id', 'Prefer'])
    expect(corsHeaders(square).allow).toEqual(['Prefer'])
  })
})
