import { readFileSync, readdirSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalizeJson } from './canonical-json.ts'
import { canonicalizeValue } from './canonical-value.ts'

function textOf(value: unknown): string | undefined {
  const result = canonicalizeValue(value)
  return result.kind === 'too-deep' ? undefined : result.text
}

const vectors = new URL('./vectors/', import.meta.url)
const read = (path: string): Buffer => readFileSync(new URL(path, vectors))

function canonical(json: string | Uint8Array): string {
  const result = canonicalizeJson(json)
  if (result.kind !== 'canonical') throw new Error(`${result.kind}: ${result.reason}`)
  return result.text
}

/** An independent and slow reading of RFC 8785. */
function reference(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(reference).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const units = (name: string): number[] => Array.from({ length: name.length }, (_, i) => name.charCodeAt(i))
  const names = Object.keys(value).sort((a, b) => {
    const [x, y] = [units(a), units(b)]
    const i = x.findIndex((unit, index) => unit !== y[index])
    return i === -1 ? x.length - y.length : (x[i] ?? 0) - (y[i] ?? -1)
  })
  const own = new Map(Object.entries(value))
  return `{${names.map(name => `${JSON.stringify(name)}:${reference(own.get(name))}`).join(',')}}`
}

describe('vectors of RFC 8785', () => {
  it.each(readdirSync(new URL('input/', vectors)))('gives the exact bytes for %s', name => {
    // The one number that a double does not keep is written as the double is; see the next test.
    const input = read(`input/${name}`).toString().replace('333333333.33333329', '333333333.3333333')
    const output = read(`output/${name}`)
    const hex = read(`outhex/${name.replace('.json', '.txt')}`)
      .toString()
      .replace(/\s+/g, '')
    expect(Buffer.from(canonical(Buffer.from(input)))).toEqual(output)
    expect(Buffer.from(canonical(input)).toString('hex')).toBe(hex)
    expect(textOf(JSON.parse(read(`input/${name}`).toString()))).toBe(output.toString())
  })

  it('notices that values.json holds more digits than a double keeps', () => {
    expect(canonicalizeJson(read('input/values.json'))).toEqual({ kind: 'lossy', reason: 'precision' })
  })

  it('spells every number of the sample', () => {
    const lines = read('numbers/es6-sample.csv').toString().trim().split('\n')
    expect(lines.length).toBe(434)
    for (const line of lines) {
      const [hex = '', expected = ''] = line.split(',')
      const value = Buffer.from(hex.padStart(16, '0'), 'hex').readDoubleBE()
      expect(textOf([value])).toBe(`[${expected}]`)
      expect(canonical(`[${expected}]`)).toBe(`[${expected}]`)
      expect(canonical(`{"a": ${value.toExponential()}}`)).toBe(`{"a":${expected}}`)
    }
  })
})

interface EdgeCase {
  name: string
  json: string
  canonical?: string
  reject?: string
  jcs_lossy?: string
}

describe('edge cases', () => {
  const cases = JSON.parse(read('edge-cases.json').toString()) as EdgeCase[] // Our own file.
  it.each(cases.map(one => [one.name, one] as const))('%s', (_, one) => {
    const result = canonicalizeJson(one.json)
    expect(canonicalizeJson(Buffer.from(one.json))).toEqual(result)
    if (one.canonical !== undefined) expect(result).toEqual({ kind: 'canonical', text: one.canonical })
    else if (one.reject === 'syntax') expect(result).toEqual({ kind: 'invalid', reason: 'syntax' })
    else if (one.reject !== undefined) expect(result).toEqual({ kind: 'lossy', reason: one.reject })
    else expect(result.kind).toBe('lossy')
  })

  it.each([
    ['[9007199254740993]', 'integer-range'],
    ['[-123456789012345678901]', 'integer-range'],
    ['[0.1000000000000000055511151231257827]', 'precision'],
    ['[123456789012345.671]', 'precision'],
    ['[1e400]', 'number-range'],
    ['[1e-400]', 'number-range'],
    [`["${'\ud83d'}"]`, 'lone-surrogate'],
    ['{"\\ud83d\\u0041":1}', 'lone-surrogate'],
  ])('calls %s lossy: %s', (json, reason) => {
    expect(canonicalizeJson(json)).toEqual({ kind: 'lossy', reason })
  })

  it.each([
    ['[0.1,1.0,1e3,-1.50,0.10,100000e-5,0e9,-0.0e-7]', '[0.1,1,1000,-1.5,0.1,1,0,0]'],
    ['[12.5,12.50,999999999999999,1234567890123.25]', '[12.5,12.5,999999999999999,1234567890123.25]'],
    ['[9007199254740992,1E20,1e21]', '[9007199254740992,100000000000000000000,1e+21]'],
    [' { "b" : [ ] , "a" : { } } ', '{"a":{},"b":[]}'],
    ['"x"', '"x"'],
    ['{"":1,"a b":2,"a":3,"a!":4,"aa":5,"ab":6}', '{"":1,"a":3,"a b":2,"a!":4,"aa":5,"ab":6}'],
    ['{"a\\"":1,"a":2,"a\\\\":3,"aZ":4,"a\\u0001":5}', '{"a":2,"a\\u0001":5,"a\\"":1,"aZ":4,"a\\\\":3}'],
  ])('writes %s as %s', (json, expected) => {
    expect(canonical(json)).toBe(expected)
  })

  it.each([
    ...[
      '',
      ' ',
      '[',
      ']',
      '{',
      '{"a"}',
      '{"a":}',
      '{"a":1,}',
      '{a:1}',
      '[1 2]',
      '[1,,2]',
      '"a',
      '"\\x"',
      '"\n"',
      'nul',
    ],
    ...[
      'truex',
      '[1]x',
      '1.',
      '-',
      '+1',
      '.5',
      '1e',
      '1e+',
      '1.2.3',
      '0x1',
      '--1',
      '00',
      '-01',
      '\ufeff1',
      '[1]\0',
      '\0',
      '"a\\',
    ],
    ...['{"a":1 "b":2}', "{'a':1}", '[1}', '{"a":1]', '1-2'],
  ])('refuses %j, as JSON.parse does', json => {
    expect(() => JSON.parse(json) as unknown).toThrow()
    expect(canonicalizeJson(json)).toEqual({ kind: 'invalid', reason: 'syntax' })
  })

  it('refuses bytes that are not UTF-8', () => {
    expect(canonicalizeJson(Buffer.from([0x22, 0xff, 0x22]))).toEqual({ kind: 'invalid', reason: 'encoding' })
    expect(canonicalizeJson(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]))).toEqual({
      kind: 'invalid',
      reason: 'encoding',
    })
  })

  it.each(['[', '{"a":', '[{"a":'])('bounds the depth of %s repeated 100,000 times', opening => {
    const limits = { bytesMax: 10_000_000 }
    expect(canonicalizeJson(opening.repeat(100_000), limits)).toEqual({ kind: 'lossy', reason: 'depth' })
    expect(canonicalizeJson('['.repeat(256) + ']'.repeat(256)).kind).toBe('canonical')
    expect(canonicalizeJson('['.repeat(257) + ']'.repeat(257)).kind).toBe('lossy')
  })

  it('bounds the size', () => {
    expect(canonicalizeJson(`"${'a'.repeat(256 * 1024 - 2)}"`).kind).toBe('canonical')
    expect(canonicalizeJson(`"${'a'.repeat(256 * 1024 - 1)}"`)).toEqual({ kind: 'lossy', reason: 'size' })
  })

  it('finds a name given twice among many', () => {
    const names = Array.from({ length: 200 }, (_, i) => `"n${(i * 37) % 200}":${i}`)
    expect(canonicalizeJson(`{${names.join(',')}}`).kind).toBe('canonical')
    expect(canonicalizeJson(`{${names.join(',')},"n5":0}`)).toEqual({ kind: 'lossy', reason: 'duplicate-key' })
  })

  it('grows where the canonical text is longer than the source', () => {
    const json = `[${new Array<string>(1000).fill('1e20').join(',')}]`
    expect(canonical(json)).toBe(`[${new Array<string>(1000).fill('100000000000000000000').join(',')}]`)
  })

  it('reads a view into the middle of a buffer', () => {
    const bytes = Buffer.from('xx{"b":1.50,"a":"\\u0041"}yy')
    expect(canonical(new Uint8Array(bytes.buffer, bytes.byteOffset + 2, bytes.length - 4))).toBe('{"a":"A","b":1.5}')
  })
})

const names = fc.oneof(
  fc.string({ maxLength: 6 }),
  fc.string({
    unit: fc.constantFrom(
      'a',
      'b',
      '"',
      '\\',
      '\n',
      ' ',
      '!',
      '\u00e9',
      '\ud7ff',
      '\ue000',
      '\uff01',
      '\u{10000}',
      '\u{1f600}',
    ),
    maxLength: 4,
  }),
  fc.constantFrom('__proto__', 'constructor', '1', '10', '9'),
)
const leaves = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
)
const { value: values } = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaves,
    fc.array(tie('value'), { maxLength: 6 }),
    fc.array(fc.tuple(names, tie('value')), { maxLength: 40 }).map(entries => Object.fromEntries(entries)),
  ),
}))

/** A text of the same value with other white space and another order of names. */
function respell(value: unknown, random: (n: number) => number): string {
  const gap = (): string => ['', ' ', '\n\t', '  \r\n'][random(4)] ?? ''
  if (Array.isArray(value)) return `[${gap()}${value.map(v => respell(v, random)).join(`${gap()},${gap()}`)}${gap()}]`
  if (typeof value !== 'object' || value === null) return gap() + JSON.stringify(value) + gap()
  const entries = Object.entries(value)
  for (let i = entries.length - 1; i > 0; i--) entries.push(...entries.splice(random(i + 1), 1))
  return `{${gap()}${entries.map(([n, v]) => `${JSON.stringify(n)}${gap()}:${respell(v, random)}`).join(`,${gap()}`)}}`
}

describe('properties', () => {
  it('agrees with an independent implementation, from text and from a value', () => {
    fc.assert(
      fc.property(values, value => {
        const expected = reference(value)
        expect(canonical(JSON.stringify(value))).toBe(expected)
        expect(textOf(value)).toBe(expected)
      }),
      { numRuns: 500 },
    )
  })

  it('does not depend on white space and the order of names', () => {
    fc.assert(
      fc.property(values, fc.infiniteStream(fc.nat()), (value, stream) => {
        const random = (n: number): number => Number(stream.next().value) % n
        expect(canonical(respell(value, random))).toBe(canonical(JSON.stringify(value)))
      }),
      { numRuns: 300 },
    )
  })

  it('is idempotent', () => {
    fc.assert(
      fc.property(values, value => {
        const once = canonical(JSON.stringify(value))
        expect(canonical(once)).toBe(once)
        expect(canonical(JSON.stringify(JSON.parse(once)))).toBe(once)
      }),
    )
  })

  it('gives different decimal numbers different results, or none', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[1-9]\d{0,18}(\.\d{0,6}[1-9])?$/), fc.nat({ max: 9 }), (number, digit) => {
        const other = number.slice(0, -1) + String(digit)
        fc.pre(BigInt(number.replace('.', '')) !== BigInt(other.replace('.', '')))
        const [a, b] = [canonicalizeJson(number), canonicalizeJson(other)]
        if (a.kind === 'canonical' && b.kind === 'canonical') expect(a.text).not.toBe(b.text)
      }),
      { numRuns: 1000 },
    )
  })

  it('accepts exactly what JSON.parse accepts', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"b"',
      '1',
      '-',
      '0',
      '.',
      'e',
      'true',
      'null',
      ' ',
      '"\\n"',
      '"',
      '\\',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 9 }), parts => {
        const text = parts.join('')
        let valid = true
        try {
          JSON.parse(text)
        } catch {
          valid = false
        }
        const { kind } = canonicalizeJson(text)
        // A name given twice or a number out of range may be noticed before the text turns out to be broken.
        expect(valid ? kind !== 'invalid' : kind !== 'canonical').toBe(true)
      }),
      { numRuns: 5000 },
    )
  })
})
