import { describe, expect, it } from 'vitest'
import { asWritten, textOf, valueOf } from './query.ts'

describe('a parameter for postgres.js', () => {
  it.each([
    [null, null],
    ['', ''],
    [7, '7'],
    [-1.5, '-1.5'],
    [2n ** 62n, '4611686018427387904'],
    [true, 'true'],
    [Buffer.from([0, 255]), '\\x00ff'],
    [{ a: '"' }, '{"a":"\\""}'],
    [[], '{}'],
    [['a"b', 'c\\d', 'e,f', '', 'NULL', null], '{"a\\"b","c\\\\d","e,f","","NULL",NULL}'],
    [[Buffer.from([1])], '{"\\\\x01"}'],
  ])('of %s is %s', (value, text) => expect(textOf(value)).toBe(text))

  it('is only the part of a buffer that it was given', () => {
    expect(textOf(Uint8Array.of(1, 2, 3, 4).subarray(1, 3))).toBe('\\x0203')
  })
})

describe('a field of postgres.js', () => {
  it.each([
    ['t', 16, true],
    ['f', 16, false],
    ['\\x00ff', 17, Buffer.from([0, 255])],
    ['\\000a\\\\\\377', 17, Buffer.from([0, 0x61, 0x5c, 255])],
    ['9007199254740993', 20, '9007199254740993'],
    ['7', 21, 7],
    ['-1.5', 701, -1.5],
    ['{"a":1}', 3802, { a: 1 }],
    ['é', 25, 'é'],
  ])('%s of type %i is %s', (text, type, value) => expect(valueOf(Buffer.from(text), type)).toEqual(value))

  it('may be null', () => expect(valueOf(null, 25)).toBeNull())
})

it.each(['locked_until_ms', 'lockedUntilMs', 'LockedUntilMs', 'locked-until-ms'])('reads the column %s', name =>
  expect(asWritten(name)).toBe('locked_until_ms'),
)
