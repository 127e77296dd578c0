import { describe, expect, it } from 'vitest'
import { isLatchkeyError } from '../../ports/errors.ts'
import { inputText } from './input-text.ts'

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

describe('the input of work that is stored', () => {
  it('is JSON as it was given, in its own order', () => {
    expect(inputText('orders.create', { b: 1, a: [null] })).toEqual({ kind: 'text', text: '{"b":1,"a":[null]}' })
    expect(inputText('orders.create', undefined)).toEqual({ kind: 'text', text: 'null' })
  })

  it('has at most 65,536 bytes, counted as UTF-8', () => {
    expect(inputText('orders.create', 'x'.repeat(65_534)).kind).toBe('text')
    const tooLarge = { kind: 'too-large', limit: { max: 65_536, unit: 'bytes' } }
    expect(inputText('orders.create', 'x'.repeat(65_535))).toEqual(tooLarge)
    expect(inputText('orders.create', '\u00e9'.repeat(32_768))).toEqual(tooLarge)
  })

  it('is nested at most 256 levels, however deep a client goes', () => {
    expect(inputText('orders.create', nested(256)).kind).toBe('text')
    for (const levels of [257, 10_000, 500_000]) {
      expect(inputText('orders.create', nested(levels))).toEqual({
        kind: 'too-large',
        limit: { max: 256, unit: 'levels' },
      })
    }
  })

  const loop: { self?: unknown } = {}
  loop.self = loop
  it.each<[string, unknown]>([
    ['a BigInt', { amount: 1n }],
    ['a value that refers to itself', loop],
    ['a function', () => 1],
  ])('is a mistake of the developer where it is %s', (_, input) => {
    expect(() => inputText('orders.create', input)).toThrow(
      expect.toSatisfy(error => isLatchkeyError(error, 'misconfigured') && error.message.startsWith('orders.create:')),
    )
  })
})
