import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readKeyField, writeKeyField } from './key-field.ts'
import type { KeyFieldResult } from './key-rules.ts'

type Expectation = { key: string } | { error: string }
interface HeaderCase {
  name: string
  raw: string[]
  strict: Expectation
  lenient: Expectation
}

// The file is ours and lies beside this test.
const { cases } = JSON.parse(
  readFileSync(new URL('./vectors/idempotency-key/header-cases.json', import.meta.url), 'utf8'),
) as { cases: HeaderCase[] }

function summary(result: KeyFieldResult): unknown {
  if (result.kind === 'key') return { key: result.key }
  return result.kind === 'invalid' ? { error: result.reason } : result
}

describe('header cases', () => {
  it.each(cases.map(one => [one.name, one] as const))('reads "%s" in both syntaxes', (_, { raw, strict, lenient }) => {
    expect(summary(readKeyField(raw, { strictSyntax: true }))).toEqual(strict)
    expect(summary(readKeyField(raw))).toEqual(lenient)
    if (raw.length === 1) expect(summary(readKeyField(raw[0]))).toEqual(lenient)
  })
})

describe('reading the key field', () => {
  it('calls an absent field missing and an empty one malformed', () => {
    expect(readKeyField(undefined)).toEqual({ kind: 'missing' })
    expect(readKeyField([])).toEqual({ kind: 'missing' })
    expect(summary(readKeyField(['']))).toEqual({ error: 'malformed' })
  })

  it.each([[['"a', 'b"']], [['"a"', '']], [['', '"a"']], [['"a"', ';v=1']], [['a', 'a']]])(
    'refuses the lines %j',
    lines => {
      expect(summary(readKeyField(lines))).toEqual({ error: 'malformed' })
      expect(summary(readKeyField(lines, { strictSyntax: true }))).toEqual({ error: 'malformed' })
    },
  )

  it.each([
    ['a b', 'U+0020 at position 2 cannot occur in'],
    ['  a,b', 'the character , at position 4 cannot occur in'],
    ['abc;v=1', 'the character ; at position 4 cannot occur in'],
    ['(abc)', 'the character ( at position 1 cannot begin'],
    ['?1', 'the character ? at position 1 cannot begin'],
    ['ab\u00e9', 'U+00E9 at position 3 cannot occur in'],
    ['"ab\u00e9"', 'U+00E9 at position 4 is not printable'],
    ['abc\r\n', 'U+000D at position 4'],
  ])('names the character of %j that is wrong, and its place', (text, named) => {
    const result = readKeyField(text)
    expect(result.kind === 'invalid' && result.detail).toContain(named)
  })

  it('takes keys of every common generator without quotes', () => {
    const alphabets = [
      'useandom-26T198340PX75pxJACKVERYMINDBUSHWOLF_GQZbfghjklqvwyzrict',
      'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
      'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
    ]
    const keys = fc
      .constantFrom(...alphabets)
      .chain(all => fc.string({ unit: fc.constantFrom(...all), minLength: 1, maxLength: 44 }))
    fc.assert(
      fc.property(keys, key => {
        expect(readKeyField(key)).toEqual({ kind: 'key', key })
      }),
    )
    expect(readKeyField('/+8=')).toEqual({ kind: 'key', key: '/+8=' })
  })

  it.each([
    'abc\r\n',
    'abc\nx: y',
    '"abc\r\n"',
    'abc\0',
    'a b',
    'abc;v=1',
    '(abc)',
    '"abc',
    '"abc"\t',
    '\u00e9',
    '\u{1f511}',
  ])('refuses %j', text => {
    expect(summary(readKeyField(text))).toEqual({ error: 'malformed' })
  })

  it('keeps case and inner or trailing spaces of a quoted key', () => {
    expect(readKeyField('  aB ')).toEqual({ kind: 'key', key: 'aB' })
    expect(readKeyField('"a B "')).toEqual({ kind: 'key', key: 'a B ' })
  })

  it('ignores parameters of every type, also a date in the middle', () => {
    expect(readKeyField('"abc";a=@1;b=:YQ==:;c=?0;d=%"x";e=1.5;f=t')).toEqual({ kind: 'key', key: 'abc' })
  })

  it('applies the length after unescaping', () => {
    expect(readKeyField(`"${'\\"'.repeat(255)}"`)).toEqual({ kind: 'key', key: '"'.repeat(255) })
    expect(summary(readKeyField('k'.repeat(256)))).toEqual({ error: 'too-long' })
    expect(summary(readKeyField('"abc"', { keyFormat: { minLength: 4 } }))).toEqual({ error: 'too-short' })
    expect(summary(readKeyField('k'.repeat(300), { keyFormat: { maxLength: 300 } }))).toEqual({ key: 'k'.repeat(300) })
  })

  it('wants the whole key to match the pattern, whatever its flags', () => {
    const keyFormat = { pattern: /[a-z]|[a-z]{3}/gmy }
    for (let round = 0; round < 2; round++) {
      expect(summary(readKeyField('abc', { keyFormat }))).toEqual({ key: 'abc' })
      expect(summary(readKeyField('abcd', { keyFormat }))).toEqual({ error: 'format' })
    }
  })

  it('refuses a huge field without parsing it', () => {
    expect(summary(readKeyField(`"a";${'x'.repeat(10_000_000)}`))).toEqual({ error: 'too-long' })
    expect(summary(readKeyField(new Array<string>(100_000).fill('"a"')))).toEqual({ error: 'too-long' })
  })

  it('never repeats the key in a detail, since details reach logs', () => {
    for (const text of ['secret!?"', 'secretsecret', '"secret']) {
      const result = readKeyField(text, { keyFormat: { maxLength: 3 } })
      expect(result.kind === 'invalid' && result.detail).not.toMatch(/secret/)
      expect(result.kind).toBe('invalid')
    }
  })
})

describe('writing the key field', () => {
  it('is read back as the same key in both syntaxes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 255 }), key => {
        expect(readKeyField(writeKeyField(key), { strictSyntax: true })).toEqual({ kind: 'key', key })
        expect(readKeyField(writeKeyField(key))).toEqual({ kind: 'key', key })
      }),
    )
  })

  it('gives the bare and the quoted spelling one key', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[!#$%&*+./0-9<=>A-Z[\]^_`a-z{|}~-][!#-+\--:<-[\]-~]{0,254}$/), key => {
        expect(readKeyField(key)).toEqual(readKeyField(writeKeyField(key)))
      }),
    )
  })

  it.each(['', 'cl\u00e9', 'a\nb'])('refuses %j', key => {
    expect(() => writeKeyField(key)).toThrow(RangeError)
  })
})
