import { describe, expect, it } from 'vitest'
import { differingParts, fingerprintRequest } from './fingerprint.ts'
import { frameParts } from './multipart.ts'

interface Part {
  head: string[]
  content: string | Uint8Array
}

const field = (name: string, content: string): Part => ({
  head: [`Content-Disposition: form-data; name="${name}"`],
  content,
})

function encode(boundary: string, parts: Part[]): Buffer {
  const pieces = parts.flatMap(({ head, content }) => [
    `--${boundary}\r\n`,
    ...head.map(line => `${line}\r\n`),
    '\r\n',
    content,
    '\r\n',
  ])
  return Buffer.concat([...pieces, `--${boundary}--\r\n`].map(piece => Buffer.from(piece)))
}

function same(a: Part[], b: Part[]): boolean {
  const [x, y] = [a, b].map((parts, i) => frameParts(`multipart/form-data; boundary=b${i}`, encode(`b${i}`, parts)))
  expect([x, y]).not.toContain(undefined)
  return Buffer.compare(x ?? Buffer.of(), y ?? Buffer.of()) === 0
}

describe('a multipart body', () => {
  const file = (filename: string, type: string, content: string | Uint8Array): Part => ({
    head: [`Content-Disposition: form-data; name="file"; filename="${filename}"`, `Content-Type: ${type}`],
    content,
  })

  it('does not depend on the boundary, its quotes, the preamble or the epilogue', () => {
    const parts = [field('a', '1'), file('x.bin', 'application/octet-stream', Buffer.from([0, 13, 10, 45, 45, 255]))]
    expect(same(parts, parts)).toBe(true)
    const plain = frameParts('multipart/form-data; boundary=q', encode('q', parts))
    const dressed = Buffer.concat([Buffer.from('hello\r\n'), encode('q r', parts), Buffer.from('bye')])
    expect(frameParts('Multipart/Form-Data; charset=x; Boundary="q r"', dressed)).toEqual(plain)
  })

  it('reads what the platform itself encodes, twice', async () => {
    const encoded = async (): Promise<Uint8Array | undefined> => {
      const form = new FormData()
      form.set('amount', '12')
      form.set('file', new File([new Uint8Array([1, 2, 3])], 'a "b".png', { type: 'image/png' }))
      const response = new Response(form)
      return frameParts(response.headers.get('content-type') ?? '', new Uint8Array(await response.arrayBuffer()))
    }
    const first = await encoded()
    expect(first).toBeDefined()
    expect(await encoded()).toEqual(first)
  })

  it.each<[string, Part[], Part[]]>([
    ['content', [field('a', '1')], [field('a', '2')]],
    ['a name', [field('a', '1')], [field('b', '1')]],
    ['the order', [field('a', '1'), field('b', '1')], [field('b', '1'), field('a', '1')]],
    ['a file name', [file('x', 'text/plain', '')], [file('y', 'text/plain', '')]],
    ['a part type', [file('x', 'text/plain', '')], [file('x', 'text/html', '')]],
    ['the number of parts', [field('a', '1')], [field('a', '1'), field('a', '1')]],
    [
      'no file name and an empty one',
      [field('file', '')],
      [{ head: ['Content-Disposition: form-data; name="file"; filename=""'], content: '' }],
    ],
  ])('depends on %s', (_, a, b) => {
    expect(same(a, b)).toBe(false)
  })

  it('takes parts without a head', () => {
    expect(same([{ head: [], content: 'x' }], [{ head: [], content: 'x' }])).toBe(true)
    expect(same([{ head: [], content: 'x' }], [{ head: [], content: 'y' }])).toBe(false)
  })

  it.each<[string, string, string | Buffer]>([
    ['no boundary', 'multipart/form-data', encode('b', [field('a', '1')])],
    ['an empty boundary', 'multipart/form-data; boundary=""', encode('', [field('a', '1')])],
    ['another boundary', 'multipart/form-data; boundary=c', encode('b', [field('a', '1')])],
    ['two boundaries', 'multipart/form-data; boundary=b; boundary=c', encode('b', [field('a', '1')])],
    ['no end', 'multipart/form-data; boundary=b', encode('b', [field('a', '1')]).subarray(0, -6)],
    ['a part without a blank line', 'multipart/form-data; boundary=b', '--b\r\nX: y\r\n--b--'],
    ['text behind a delimiter', 'multipart/form-data; boundary=b', '--bc\r\n\r\nx\r\n--b--'],
    ['a header given twice', 'multipart/form-data; boundary=b', encode('b', [{ head: ['X: 1', 'x: 2'], content: '' }])],
    [
      'a broken disposition',
      'multipart/form-data; boundary=b',
      encode('b', [{ head: ['Content-Disposition: form-data; name="'], content: '' }]),
    ],
    ['too many parts', 'multipart/form-data; boundary=b', encode('b', new Array<Part>(1001).fill(field('a', '1')))],
    ['nothing', 'multipart/form-data; boundary=b', ''],
  ])('with %s is not read', (_, mediaType, body) => {
    expect(frameParts(mediaType, Buffer.from(body))).toBeUndefined()
  })

  it('that is not read counts by its bytes', () => {
    const of = (body: string): Uint8Array =>
      fingerprintRequest({
        method: 'POST',
        path: '/',
        query: '',
        mediaType: 'multipart/mixed',
        body: Buffer.from(body),
        header: () => undefined,
      })
    expect(differingParts(of('x'), of('x'))).toEqual([])
    expect(differingParts(of('x'), of('y'))).toEqual(['body'])
  })
})

describe('a form body', () => {
  const of = (body: string): Uint8Array =>
    fingerprintRequest({
      method: 'POST',
      path: '/',
      query: '',
      mediaType: 'application/x-www-form-urlencoded',
      body: Buffer.from(body),
      header: () => undefined,
    })

  it('counts by its pairs', () => {
    expect(differingParts(of('a=1&b=x+y'), of('b=x%20y&a=1'))).toEqual([])
    expect(differingParts(of('a=1&b=2'), of('a=2&b=1'))).toEqual(['body'])
    expect(differingParts(of('a=1'), of('a=1&a=1'))).toEqual(['body'])
  })
})
