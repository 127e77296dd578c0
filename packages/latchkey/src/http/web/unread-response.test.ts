import { getRequestListener } from '@hono/node-server'
import { afterEach, describe, expect, it } from 'vitest'
import { captureFetchResponse } from './capture.ts'
import { partsOf } from './unread-response.ts'

const platform = Response
// Making a listener puts the server's own class in the global place.
getRequestListener(() => new Response())
const ofHono = Response
const capture = (response: Response) =>
  captureFetchResponse(response, { error: undefined, before: [], bytesMax: 1_000, request: new Request('http://x') })

function use(value: typeof Response): void {
  Object.defineProperty(globalThis, 'Response', { value, writable: true, configurable: true })
}
afterEach(() => use(ofHono))

describe('a response of the platform', () => {
  it('says nothing about what it was made of', () => {
    use(platform)
    expect(partsOf(new Response('tea', { headers: { 'content-type': 'text/plain' } }))).toBeUndefined()
  })
})

describe("a response of Hono's Node server", () => {
  const type = { 'Content-Type': 'application/json' }

  it('is known without being read', () => {
    expect(Response).not.toBe(platform)
    const response = new Response('{}', { status: 201, headers: { 'X-B': '2', ...type } })
    const headers = [
      ['content-type', 'application/json'],
      ['x-b', '2'],
    ]
    expect(partsOf(response)).toEqual({ status: 201, body: '{}', headers })
    expect(partsOf(new Response(null, { headers: new Headers({ a: '1' }) }))?.headers).toEqual([['a', '1']])
  })

  it.each([
    ['a name twice', { a: '1', A: '2' }],
    ['a name that is no token', { 'a b': '1' }],
    ['a value that would be trimmed', { a: ' 1' }],
    ['a value over two lines', { a: '1\r\nb: 2' }],
    ['a value outside ASCII', { a: 'é' }],
  ])('is read where Headers would refuse or rewrite it: %s', (_, headers) => {
    expect(partsOf(new Response('tea', { headers }))).toBeUndefined()
  })

  it('is read once somebody has looked into it', async () => {
    const response = new Response('tea', { headers: { 'content-type': 'text/plain' } })
    expect(response.bodyUsed).toBe(false)
    expect(partsOf(response)).toBeUndefined()
    expect(await capture(response)).toMatchObject({
      attempt: { outcome: { body: Buffer.from('tea') } },
    })
  })

  it('is sent as the handler made it, and stored byte for byte', async () => {
    const response = new Response('{"tea":"☕"}', { status: 201, headers: type })
    const { response: sent, attempt } = await capture(response)
    expect(sent).toBe(response)
    expect(attempt).toMatchObject({
      outcome: { status: 201, headers: [['content-type', 'application/json']], body: Buffer.from('{"tea":"☕"}') },
    })
    expect(await sent?.text()).toBe('{"tea":"☕"}')
  })

  it('keeps its bytes when the handler uses their memory again', async () => {
    const bytes = Buffer.from('first')
    const { response, attempt } = await capture(new Response(bytes, { headers: type }))
    bytes.write('other')
    expect(attempt).toMatchObject({ outcome: { body: new Uint8Array(Buffer.from('first')) } })
    expect(await response?.text()).toBe('first')
  })

  it.each([
    ['Content-Length', '99'],
    ['Transfer-Encoding', 'chunked'],
  ])('is read where it declares its own framing: %s', async (name, value) => {
    const response = new Response('tea', { headers: { ...type, [name]: value } })
    const { headers } = (await capture(response)).response ?? new Response()
    expect(headers.get('content-length')).toBe('3')
    expect(headers.has('transfer-encoding')).toBe(false)
  })

  it('gets the type that fetch gives to a text without one', async () => {
    const { attempt } = await capture(new Response('tea', { headers: { 'x-a': '1' } }))
    expect(attempt).toMatchObject({
      outcome: {
        headers: [
          ['content-type', 'text/plain;charset=UTF-8'],
          ['x-a', '1'],
        ],
      },
    })
  })
})
