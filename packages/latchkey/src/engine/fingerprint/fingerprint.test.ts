import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  differingParts,
  findFingerprintFault,
  fingerprintInput,
  fingerprintRequest,
  fingerprintVersion,
  restateFingerprint,
  sameFingerprint,
} from './fingerprint.ts'
import type { FingerprintOptions, FingerprintPart, RequestParts } from './fingerprint.ts'

function request(parts: Partial<Omit<RequestParts, 'body'>> & { body?: string | Uint8Array } = {}): RequestParts {
  const { body = '{"a":1}', ...others } = parts
  return {
    method: 'POST',
    path: '/orders',
    query: '',
    mediaType: 'application/json',
    header: () => undefined,
    ...others,
    body: Buffer.from(body),
  }
}

type Given = Parameters<typeof request>[0]

function differing(a: Given, b: Given, options?: FingerprintOptions): FingerprintPart[] {
  const [x, y] = [fingerprintRequest(request(a), options), fingerprintRequest(request(b), options)]
  const parts = differingParts(x, y)
  expect(sameFingerprint(x, y)).toBe(parts.length === 0)
  return parts
}

const same: FingerprintPart[] = []

describe('a fingerprint', () => {
  it('has its version, 16 bytes for the whole and 2 for each of five parts', () => {
    const fingerprint = fingerprintRequest(request())
    expect(fingerprint.length).toBe(27)
    expect(fingerprintVersion(fingerprint)).toBe(2)
  })

  it('never changes for version 2, since stored rows are compared with it', () => {
    expect(vectors.map(fingerprint => Buffer.from(fingerprint).toString('hex'))).toEqual([
      '02c32201cde6d02d3a020a2ddc0500ab6d9aeeb6054ba539abe3b0',
      '02346ed3f47370b3d9d8db0656ea33437caba674fe327409b5f9e6',
      '02b054326e9b01f72a01197416c38e185ae3b0e3b0e3b06ed1e3b0',
    ])
  })

  it.each<[string, Given, FingerprintPart[]]>([
    ['the method', { method: 'PATCH' }, ['method']],
    ['the path', { path: '/orders/2' }, ['path']],
    ['the query', { query: 'dry=1' }, ['query']],
    ['the media type', { mediaType: 'application/merge-patch+json' }, ['body']],
    ['the body', { body: '{"a":2}' }, ['body']],
    ['path and body', { path: '/x', body: '{}' }, ['path', 'body']],
    ['nothing', { mediaType: 'APPLICATION/json;charset=utf-8', body: ' {"a":1.0} ' }, same],
  ])('tells that %s differs', (_, other, parts) => {
    expect(differing({}, other)).toEqual(parts)
  })

  it('does not let a part flow into its neighbour', () => {
    expect(differing({ path: '/a', query: 'b' }, { path: '/ab', query: '' })).toEqual(['path', 'query'])
    expect(differing({ mediaType: 'text/a', body: 'b' }, { mediaType: 'text/ab', body: '' })).toEqual(['body'])
  })
})

const vector = request({
  path: '/orders/1',
  query: 'b=2&a=1',
  body: '{"b":2,"a":[1.50,"\u00e9"]}',
  mediaType: 'Application/JSON; charset=utf-8',
})
const vectors = [
  fingerprintRequest(vector),
  fingerprintRequest(vector, { hmac: 'secret' }),
  fingerprintInput({ b: 1, a: null }),
]

describe('a fingerprint of version 1', () => {
  /** Of the same requests, as that version stored them. */
  const stored = [
    '01c32201cde6d02d3a020a2ddc0500ab6d9aee6b1bcdf617d8b6055492bcb857a44ba59f5e28ec256939ab9d45a8839415e3b0c44298fc1c14',
    '01346ed3f47370b3d9d8db0656ea33437caba64f5bb1d6f1d074fed5d8b72c7ce03274e862d487da4709b597fab678166af9e66e179b6747ae',
    '01b054326e9b01f72a01197416c38e185ae3b0c44298fc1c14e3b0c44298fc1c14e3b0c44298fc1c146ed135f5b3eb49aae3b0c44298fc1c14',
  ].map(hex => Buffer.from(hex, 'hex'))

  it('is that of the same request, restated', () => {
    for (const [index, fingerprint] of vectors.entries()) {
      const before = stored[index] ?? Buffer.of()
      expect(restateFingerprint(fingerprint, before)).toEqual(Uint8Array.from(before))
    }
  })

  it('differs from that of another request, and tells in which part', () => {
    const [before = Buffer.of()] = stored
    const other = restateFingerprint(fingerprintRequest({ ...vector, path: '/orders/2' }), before) ?? Buffer.of()
    expect(fingerprintVersion(other)).toBe(1)
    expect(sameFingerprint(other, before)).toBe(false)
    expect(differingParts(other, before)).toEqual(['path'])
  })

  it('is not made for a stored one that is cut, or of a version that is not known here', () => {
    const [before = Buffer.of()] = stored
    const [fingerprint = Buffer.of()] = vectors
    const later = Buffer.from(before)
    later[0] = 3
    for (const strange of [before.subarray(0, 56), later, Buffer.of()]) {
      expect(restateFingerprint(fingerprint, strange)).toBeUndefined()
    }
    expect(restateFingerprint(before, before)).toBeUndefined()
  })
})

describe('the query', () => {
  it.each([
    ['a=1&b=2', 'b=2&a=1', true],
    ['a=1&a=2', 'a=2&a=1', false],
    ['a=%41', 'a=A', true],
    ['a=b+c', 'a=b%20c', true],
    ['a', 'a=', true],
    ['a=1&', '&a=1', true],
    ['a=1', 'a=2', false],
    ['a=1&b=2', 'a=1%26b=2', false],
    ['ab=', 'a=b', false],
    ['a=%ff', 'a=%fe', false],
    ['a=%E2%82%AC', 'a=%e2%82%ac', true],
    ['a=%zz', 'a=%zy', false],
  ])('%s and %s are the same: %s', (a, b, equal) => {
    expect(differing({ query: a }, { query: b })).toEqual(equal ? same : ['query'])
  })
})

describe('a JSON body', () => {
  it.each([
    ['{"a":1,"b":2}', '{ "b": 2, "a": 1 }', true],
    ['{"a":[1,2]}', '{"a":[2,1]}', false],
    ['{"a":1}', '{"a":"1"}', false],
    ['{"a":null}', '{}', false],
    ['{"__proto__":{"x":1}}', '{"__proto__":{"x":2}}', false],
    ['{"__proto__":1}', '{}', false],
    ['{"a":9007199254740993}', '{"a":9007199254740992}', false],
    ['{"a":1,"a":2}', '{"a":2}', false],
    ['{"a":1e400}', '{"a":1e401}', false],
    ['{"a":"\\ud83d"}', '{"a":"\\ud83e"}', false],
    ['{"a":1', '{"a":1 ', false],
    ['', ' ', false],
  ])('%s and %s are the same: %s', (a, b, equal) => {
    expect(differing({ body: a }, { body: b })).toEqual(equal ? same : ['body'])
  })

  it('above 256 KiB counts by its bytes', () => {
    const long = JSON.stringify({ b: 'x'.repeat(256 * 1024), a: 1 })
    expect(differing({ body: long }, { body: long })).toEqual(same)
    expect(differing({ body: long }, { body: ` ${long}` })).toEqual(['body'])
  })

  it('of 100,000 brackets counts by its bytes', () => {
    expect(differing({ body: '['.repeat(100_000) }, { body: '['.repeat(100_001) })).toEqual(['body'])
  })

  it('sorts alike in every locale', () => {
    const names = ['z', '\u00e4', 'a', 'I', 'i', '\u0131', '\u0130', 'ch', 'c', 'd', 'AA', 'aa']
    const original = String.prototype.localeCompare
    const before = fingerprintRequest(request({ body: JSON.stringify(Object.fromEntries(names.map(n => [n, n]))) }))
    // Whoever asks the locale while sorting gets the reverse.
    String.prototype.localeCompare = function (that: string): number {
      return -original.call(this, that)
    }
    try {
      const body = JSON.stringify(Object.fromEntries(names.toReversed().map(n => [n, n])))
      expect(sameFingerprint(fingerprintRequest(request({ body })), before)).toBe(true)
    } finally {
      String.prototype.localeCompare = original
    }
  })

  it('that differs as a value never gives the same fingerprint', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const sorted = (value: unknown): string =>
          JSON.stringify(value, (_, v: unknown) =>
            typeof v === 'object' && v !== null && !Array.isArray(v)
              ? Object.entries(v)
                  .sort(([x], [y]) => (x < y ? -1 : 1))
                  .flat()
              : v,
          )
        fc.pre(sorted(a) !== sorted(b))
        const [x, y] = [a, b].map(value => fingerprintRequest(request({ body: JSON.stringify(value) })))
        expect(sameFingerprint(x ?? Buffer.of(), y ?? Buffer.of())).toBe(false)
      }),
    )
  })
})

describe('the options', () => {
  it('include names the fields that count', () => {
    const options = { include: ['sku', 'customer.id', 'items.price'] }
    const first = { body: '{"sku":1,"customer":{"id":1,"at":1},"items":[{"price":1,"note":"x"}],"t":1}' }
    expect(differing(first, { body: '{"items":[{"price":1}],"sku":1,"customer":{"id":1,"at":2}}' }, options)).toEqual(
      same,
    )
    expect(differing(first, { body: '{"sku":1,"customer":{"id":2},"items":[{"price":1}]}' }, options)).toEqual(['body'])
    expect(differing(first, { body: '{"sku":1,"customer":{"id":1},"items":[{"price":2}]}' }, options)).toEqual(['body'])
    expect(differing({ body: '{"sku":null}' }, { body: '{}' }, options)).toEqual(['body'])
    expect(differing({ body: '{"customer":1}' }, { body: '{"customer":2}' }, options)).toEqual(['body'])
  })

  it('include that leads to nothing makes the whole body count, and says which path it was', () => {
    const missing: string[] = []
    const of = (body: string, options: FingerprintOptions) =>
      Buffer.from(fingerprintRequest(request({ body }), options, { onMissing: path => missing.push(path) })).toString(
        'hex',
      )
    const misspelt = { include: ['currency', 'ammount'] }
    const whole = of('{"amount":1,"currency":"EUR"}', {})
    expect(of('{"amount":1,"currency":"EUR"}', misspelt)).toBe(whole)
    expect(of('{"amount":2,"currency":"EUR"}', misspelt)).not.toBe(whole)
    expect(missing).toEqual(['ammount', 'ammount'])
  })

  it.each<[string, string]>([
    ['an empty list on the way', '{"items":[]}'],
    ['no fields on the way', '{"items":null}'],
    ['the field in some elements only', '{"items":[{},{"price":1}]}'],
    ['no fields at all', '5'],
  ])('include is content with %s', (_, body) => {
    const missing: string[] = []
    fingerprintRequest(request({ body }), { include: ['items.price'] }, { onMissing: path => missing.push(path) })
    expect(missing).toEqual([])
  })

  it('includeIfPresent adds fields that a body may lack', () => {
    const options = { include: ['sku'], includeIfPresent: ['note', 'sku.size'] }
    expect(differing({ body: '{"sku":1,"t":1}' }, { body: '{"sku":1,"t":2}' }, options)).toEqual(same)
    expect(differing({ body: '{"sku":1}' }, { body: '{"sku":1,"note":"x"}' }, options)).toEqual(['body'])
    expect(differing({ body: '{"sku":1,"note":"x"}' }, { body: '{"sku":1,"note":"y"}' }, options)).toEqual(['body'])
    expect(findFingerprintFault({ includeIfPresent: ['note'] })).toMatch(/includeIfPresent/)
  })

  it('exclude names the fields that do not', () => {
    const options = { exclude: ['sentAt', '/meta/a.b', 'items.note', '__proto__'] }
    const first = { body: '{"a":1,"sentAt":1,"meta":{"a.b":1,"c":1},"items":[{"note":1}],"__proto__":1}' }
    expect(differing(first, { body: '{"a":1,"sentAt":2,"meta":{"a.b":2,"c":1},"items":[{}]}' }, options)).toEqual(same)
    expect(differing(first, { body: '{"a":1,"meta":{"c":2},"items":[{}]}' }, options)).toEqual(['body'])
    expect(differing({ body: '{"a":1,"sentAt":9007199254740993}' }, { body: '{"a":1}' }, options)).toEqual(['body'])
    expect(differing({ body: '{"a":1e20,"10":1,"9":1}' }, { body: '{"9":1,"10":1,"a":1e20}' }, options)).toEqual(same)
  })

  it('headers count only when named', () => {
    const v = (version: string | undefined): Given => ({
      header: name => (name === 'api-version' ? version : undefined),
    })
    expect(differing(v('1'), v('2'))).toEqual(same)
    expect(differing(v('1'), v('2'), { headers: ['API-Version'] })).toEqual(['headers'])
    expect(differing(v(''), v(undefined), { headers: ['API-Version'] })).toEqual(['headers'])
  })

  it('hmac changes every byte but the version', () => {
    const [plain, keyed, other] = [{}, { hmac: 'k' }, { hmac: Buffer.from('l') }].map(o =>
      fingerprintRequest(request(), o),
    )
    expect(differingParts(plain ?? Buffer.of(), keyed ?? Buffer.of())).toHaveLength(5)
    expect(differingParts(keyed ?? Buffer.of(), other ?? Buffer.of())).toHaveLength(5)
    expect(sameFingerprint(plain ?? Buffer.of(), keyed ?? Buffer.of())).toBe(false)
    expect(differing({ body: '{"a":1}' }, { body: '{"a":2}' }, { hmac: 'k' })).toEqual(['body'])
  })

  it('custom replaces everything and shows in the body alone', () => {
    const custom = { custom: (asked: RequestParts) => asked.query }
    expect(differing({ path: '/a' }, { path: '/b', body: '2' }, custom)).toEqual(same)
    expect(differing({ query: 'a' }, { query: 'b' }, custom)).toEqual(['body'])
  })

  it('are checked before use', () => {
    expect(findFingerprintFault({ include: ['a'], exclude: ['b'], headers: ['c'], hmac: 'k' })).toBeUndefined()
    for (const bad of [{ hmac: '' }, { include: [] }, { exclude: [''] }, { custom: () => '', headers: ['a'] }]) {
      expect(findFingerprintFault(bad)).toMatch(/^fingerprint/)
    }
  })
})

describe('the input of a function', () => {
  it('counts by value, in the body part', () => {
    const first = fingerprintInput({ a: 1, b: [1, 2] })
    expect(sameFingerprint(first, fingerprintInput({ b: [1, 2], a: 1, c: undefined }))).toBe(true)
    expect(differingParts(first, fingerprintInput({ a: 1, b: [2, 1] }))).toEqual(['body'])
    expect(sameFingerprint(fingerprintInput(undefined), fingerprintInput(null))).toBe(false)
    expect(sameFingerprint(first, fingerprintInput({ a: 1, b: [1, 2] }, { hmac: 'k' }))).toBe(false)
  })

  it('refuses what JSON cannot hold', () => {
    expect(() => fingerprintInput({ a: 1n })).toThrow(TypeError)
  })
})
