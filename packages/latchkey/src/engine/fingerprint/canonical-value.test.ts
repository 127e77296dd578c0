import { describe, expect, it } from 'vitest'
import { canonicalizeValue } from './canonical-value.ts'

describe('canonical form of a value', () => {
  it('leaves undefined members out, honours toJSON and keeps __proto__', () => {
    const value = { b: undefined, d: new Date(0), a: JSON.parse('{"__proto__":1}') as unknown }
    expect(canonicalizeValue(value)).toEqual({
      kind: 'canonical',
      text: '{"a":{"__proto__":1},"d":"1970-01-01T00:00:00.000Z"}',
    })
  })

  it('takes an instance of a class by its own members', () => {
    class Order {
      sku = 'a'
    }
    expect(canonicalizeValue(new Order()).text).toBe('{"sku":"a"}')
    expect(canonicalizeValue(Object.assign(Object.create(null), { a: 1 })).text).toBe('{"a":1}')
  })

  it('reports an integer past 2^53 with its path', () => {
    expect(canonicalizeValue({ a: [1, { n: 2 ** 53 }] })).toEqual({
      kind: 'unsafe-integer',
      text: '{"a":[1,{"n":9007199254740992}]}',
      path: 'a.1.n',
    })
    expect(canonicalizeValue(2 ** 53 - 1).kind).toBe('canonical')
  })

  it.each<[string, unknown]>([
    ['a function', { a: () => 1 }],
    ['a bigint', { a: 1n }],
    ['a symbol', { a: Symbol('x') }],
    ['undefined in an array', { a: [undefined] }],
    ['a hole in an array', { a: new Array(1) }],
    ['NaN', { a: Number.NaN }],
    ['Infinity', { a: -Infinity }],
    ['a Map', { a: new Map([[1, 2]]) }],
    ['bytes', { a: new Uint8Array(1) }],
    ['a regular expression', { a: /x/ }],
  ])('refuses %s and names the place', (_, value) => {
    expect(() => canonicalizeValue(value)).toThrow(/: a(\.0)? is /)
  })

  it('refuses undefined itself', () => {
    expect(() => canonicalizeValue(undefined)).toThrow(TypeError)
  })

  it('gives a value that refers to itself a bounded refusal', () => {
    const loop: { self?: unknown } = {}
    loop.self = loop
    expect(() => canonicalizeValue(loop)).toThrow(/refers to itself/)
  })

  it('keeps lone surrogates apart', () => {
    expect(canonicalizeValue('\ud83d').text).not.toBe(canonicalizeValue('\ud83e').text)
    expect(canonicalizeValue('\ud83d').text).not.toBe(canonicalizeValue('\\ud83d').text)
  })
})
