import { describe, expect, it } from 'vitest'
import { isStoredHeader, readNeverStored, selectStoredHeaders } from './stored-headers.ts'

describe('stored headers', () => {
  it.each([
    ...['Set-Cookie', 'Date', 'Connection', 'Keep-Alive', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade'],
    ...['RateLimit', 'RateLimit-Policy', 'X-RateLimit-Remaining', 'Retry-After', 'Access-Control-Allow-Origin'],
    ...['traceparent', 'X-Request-Id', 'Authorization', 'WWW-Authenticate', 'Proxy-Authenticate', 'Content-Length'],
    ...['Idempotent-Replayed', 'Latchkey-Retry', ':status', 'SET-COOKIE'],
    ...['X-Auth-Token', 'X-Access-Token', 'X-Refresh-Token', 'X-CSRF-Token', 'X-XSRF-Token', 'X-Session-Id'],
    ...['X-Session-Token', 'X-Api-Key', 'DPoP-Nonce', 'Clear-Site-Data', 'Authentication-Info', 'Proxy-Status'],
  ])('leaves %s out', name => {
    expect(isStoredHeader(name)).toBe(false)
  })

  it.each([
    'Location',
    'ETag',
    'Content-Type',
    'Content-Encoding',
    'Link',
    'Vary',
    'Last-Modified',
    'Cache-Control',
    'X-Own',
    'X-Next-Page-Token',
  ])('keeps %s', name => {
    expect(isStoredHeader(name)).toBe(true)
  })

  it('leaves out what the site names, in any case', () => {
    const head = [
      ['x-ticket', '1'],
      ['X-Own', '2'],
    ] as const
    expect(selectStoredHeaders(head, readNeverStored(['X-Ticket']))).toEqual([['X-Own', '2']])
    for (const names of [['x ticket'], [''], [1], 'x-ticket']) {
      expect(readNeverStored(names as string[]), 'past the types').toBeUndefined()
    }
  })

  it('leaves out what the Connection header names, and keeps every value of a repeated name', () => {
    const head = [
      ['Connection', 'close, X-Hop'],
      ['Link', '</a>'],
      ['x-hop', '1'],
      ['connection', 'X-Other'],
      ['X-Other', '1'],
      ['Link', '</b>'],
    ] as const
    expect(selectStoredHeaders(head)).toEqual([
      ['Link', '</a>'],
      ['Link', '</b>'],
    ])
  })
})
