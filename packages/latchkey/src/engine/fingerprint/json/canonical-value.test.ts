import { describe, expect, it } from 'vitest'
import { canonicalizeValue } from './canonical-value.ts'

function textOf(value: unknown): string | undefined {
  const result = canonicalizeValue(value)
  return result.kind === 'too-deep' ? undefined : result.text
}

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
    expect(textOf(new Order())).toBe('{"sku":"a"}')
    expect(textOf(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}')
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

  it.each(['array', 'object'])('stops at 256 levels of an %s, however deep it is', kind => {
    const nested = (levels: number) => {
      let value: unknown = 1
      for (let level = 0; level < levels; level++) value = kind === 'array' ? [value] : { a: value }
      return value
    }
    expect(canonicalizeValue(nested(256)).kind).toBe('canonical')
    expect(canonicalizeValue(nested(257))).toEqual({ kind: 'too-deep', levelsMax: 256 })
    expect(canonicalizeValue(nested(100_000))).toEqual({ kind: 'too-deep', levelsMax: 256 })
    expect(canonicalizeValue([nested(100_000), 1])).toEqual({ kind: 'too-deep', levelsMax: 256 })
  })

  it('keeps lone surrogates apart', () => {
    expect(textOf('\ud83d')).not.toBe(textOf('\ud83e'))
    expect(textOf('\ud83d')).not.toBe(textOf('\\ud83d'))
  })
})
