/** Every spelling of a text has one canonical form: against a slow reference that parses, sorts and writes again. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalizeJson } from './canonical-json.ts'

interface Exact {
  readonly digits: bigint
  readonly exponent: number
}

/** The decimal number itself, without a double in between. */
function exact(number: string): Exact {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? []
  let digits = BigInt(whole + fraction)
  let exponent = Number(power) - fraction.length
  while (digits !== 0n && digits % 10n === 0n) [digits, exponent] = [digits / 10n, exponent + 1]
  return digits === 0n ? { digits, exponent: 0 } : { digits: sign === '-' ? -digits : digits, exponent }
}

/** As a double, or undefined where that would be another number. */
function referenceNumber(number: string): string | undefined {
  const spelled = JSON.stringify(JSON.parse(number))
  if (spelled === 'null') return undefined
  const [a, b] = [exact(number), exact(spelled)]
  return a.digits === b.digits && a.exponent === b.exponent ? spelled : undefined
}

const digits = (max: number) => fc.stringMatching(new RegExp(`^\\d{0,${max}}$`))
const whole = fc.oneof(
  fc.constant('0'),
  fc.stringMatching(/^[1-9]\d{0,4}$/),
  fc.stringMatching(/^[1-9]\d{13,20}$/),
  fc.stringMatching(/^[1-9]0{0,30}$/),
)
const fraction = fc.oneof(
  fc.constant(''),
  digits(4).map(text => `.${text}5`),
  digits(19).map(text => `.${text}0`),
  fc.stringMatching(/^0{0,30}[1-9]$/).map(text => `.${text}`),
)
const exponent = fc.oneof(
  fc.constant(''),
  fc.tuple(fc.constantFrom('e', 'E', 'e+', 'E-', 'e-'), fc.nat({ max: 30 })).map(([e, n]) => `${e}${n}`),
  fc.tuple(fc.constantFrom('e', 'e-'), fc.integer({ min: 285, max: 330 })).map(([e, n]) => `${e}0${n}`),
  fc.constantFrom('e99999999999999999999', 'E-99999999999999999999'),
)
const composed = fc.tuple(fc.constantFrom('', '-'), whole, fraction, exponent).map(parts => parts.join(''))
const doubles = fc.double({ noNaN: true, noDefaultInfinity: true })
const spellings = fc.oneof(
  composed,
  doubles.map(value => value.toExponential()),
  doubles.map(value => value.toPrecision(17)),
  doubles.map(value => `${value}`),
)

describe('numbers', () => {
  it('has the form of the double where that is the same number, and none where it is not', () => {
    fc.assert(
      fc.property(spellings, number => {
        const expected = referenceNumber(number)
        const result = canonicalizeJson(`[1, ${number} ,2]`)
        if (expected === undefined) expect(result.kind, number).toBe('lossy')
        else expect(result, number).toEqual({ kind: 'canonical', text: `[1,${expected},2]` })
      }),
      { numRuns: 20_000 },
    )
  })

  it.each([
    ['999999999999999e292', '9.99999999999999e+306'],
    ['0.000001', '0.000001'],
    ['1e-7', '1e-7'],
    ['123e19', '1.23e+21'],
    ['100000000000000000000', '100000000000000000000'],
    ['1000000000000000000000', '1e+21'],
    ['-1.50E+1', '-15'],
    ['-0e-5', '0'],
    [`0.${'0'.repeat(400)}1e402`, '10'],
    [`1${'0'.repeat(400)}e-400`, '1'],
    ['2.2250738585072014e-308', '2.2250738585072014e-308'],
    ['1.7976931348623157E308', '1.7976931348623157e+308'],
    ['5e-324', '5e-324'],
  ])('writes %s as %s', (number, expected) => {
    expect(canonicalizeJson(number)).toEqual({ kind: 'canonical', text: expected })
  })
})

const characters = fc.oneof(
  fc.constantFrom('a', 'b', '/', '"', '\\', '\n', '\t', '\b', '\f', '\r', '\0', '\u001f', '\u007f'),
  fc.constantFrom('\u0080', '\u07ff', '\u0800', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}'),
)

/** One of the ways in which JSON can spell a character. */
function spellCharacter(character: string, way: number): string {
  const escape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  const written = JSON.stringify(character).slice(1, -1)
  if (way === 0) return written
  if (way === 1 && character === '/') return '\\/'
  const units = character.split('').map(escape).join('')
  return way === 2 ? units.replaceAll(/[a-f]/g, digit => digit.toUpperCase()) : units
}

const spelledStrings = fc
  .array(fc.tuple(characters, fc.nat({ max: 3 })), { maxLength: 12 })
  .map(pieces => `"${pieces.map(([character, way]) => spellCharacter(character, way)).join('')}"`)

describe('strings', () => {
  it('has one form for every way of escaping', () => {
    fc.assert(
      fc.property(spelledStrings, text => {
        const expected = JSON.stringify(JSON.parse(text))
        expect(canonicalizeJson(`[${text}]`)).toEqual({ kind: 'canonical', text: `[${expected}]` })
      }),
      { numRuns: 5_000 },
    )
  })

  it('sorts names by their meaning, however they are escaped and however many there are', () => {
    fc.assert(
      fc.property(fc.array(spelledStrings, { minLength: 1, maxLength: 40 }), names => {
        const values = names.map((name): string => JSON.parse(name))
        const result = canonicalizeJson(`{${names.map(name => `${name}:0`).join(',')}}`)
        // The default order of sort is that of UTF-16 code units.
        const expected = values.toSorted().map(name => `${JSON.stringify(name)}:0`)
        const isTwice = new Set(values).size < values.length
        expect(result).toEqual(
          isTwice ? { kind: 'lossy', reason: 'duplicate-key' } : { kind: 'canonical', text: `{${expected.join(',')}}` },
        )
      }),
      { numRuns: 3_000 },
    )
  })

  it.each(['"\\u12"', '"\\u', '"\\u00zz"', '"\\ud83d', '"\\q"'])('refuses %s', text => {
    expect(canonicalizeJson(text).kind).not.toBe('canonical')
  })

  it.each(['"\\ud83d"', '"\\ude00"', '"\\ud83dx"', '"\\ud83d\\n"', '"\\ud83d\\ud83d"'])(
    'finds the lone surrogate in %s',
    text => {
      expect(canonicalizeJson(text)).toEqual({ kind: 'lossy', reason: 'lone-surrogate' })
    },
  )
})
