import { describe, expect, it } from 'vitest'
import { readableBody } from './status.ts'

const of = (type: string, body: string | Uint8Array, more: [string, string][] = []) =>
  readableBody({ headers: [['Content-Type', type], ...more], body: Buffer.from(body as string) })

describe('the body of an outcome in its status', () => {
  it('is JSON as what it says', () => {
    expect(of('application/json; charset=utf-8', '{"a":[1]}')).toEqual({ body: { a: [1] } })
    expect(of('application/problem+json', '"x"')).toEqual({ body: 'x' })
  })

  it('is text as text, in its charset', () => {
    expect(of('text/csv', 'a;b')).toEqual({ body: 'a;b' })
    expect(of('text/plain; charset=iso-8859-1', Uint8Array.of(0xe4))).toEqual({ body: 'ä' })
  })

  it('is base64 where it is bytes, coded, or not what its type says', () => {
    const bytes = { body: 'AP8=', encoding: 'base64' }
    expect(of('application/octet-stream', Uint8Array.of(0, 255))).toEqual(bytes)
    expect(of('application/json', Uint8Array.of(0, 255))).toEqual(bytes)
    expect(of('text/plain', Uint8Array.of(0, 255))).toEqual(bytes)
    expect(of('text/plain; charset=klingon', Uint8Array.of(0, 255))).toEqual(bytes)
    expect(of('application/json', '1', [['content-encoding', 'gzip']])).toEqual({ body: 'MQ==', encoding: 'base64' })
    expect(readableBody({ headers: [], body: Buffer.from('1') })).toEqual({ body: 'MQ==', encoding: 'base64' })
  })

  it('is null where there is none, and says when it was too large to keep', () => {
    expect(of('application/json', '')).toEqual({ body: null })
    expect(readableBody({ headers: [], body: undefined })).toEqual({ body: null, encoding: 'not-stored' })
  })
})
