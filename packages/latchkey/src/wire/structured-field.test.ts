import { readFileSync, readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseItem, serializeString } from './structured-field.ts'
import type { BareItem } from './structured-field.ts'

type VectorValue = string | number | boolean | { __type: string; value: string | number }
type VectorItem = [VectorValue, [string, VectorValue][]]
interface Vector {
  name: string
  raw?: string[]
  header_type: 'item' | 'list'
  expected?: VectorItem | VectorItem[]
  must_fail?: boolean
  can_fail?: boolean
}

const folder = new URL('./vectors/structured-fields/', import.meta.url)
const files = readdirSync(folder).filter(name => name.endsWith('.json'))

function readVectors(file: string): Vector[] {
  // The vectors' shape is fixed by their origin; a wrong one makes the cases below fail.
  return JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Vector[]
}

function base32(text: string): Uint8Array {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  const bits = [...text.replace(/=+$/, '')].map(c => alphabet.indexOf(c).toString(2).padStart(5, '0')).join('')
  return Uint8Array.from({ length: Math.floor(bits.length / 8) }, (_, i) => parseInt(bits.slice(i * 8, i * 8 + 8), 2))
}

function expectedItem(value: VectorValue): BareItem {
  if (typeof value === 'string') return { type: 'string', value }
  if (typeof value === 'number') return { type: 'number', value }
  if (typeof value === 'boolean') return { type: 'boolean', value }
  if (value.__type === 'date') return { type: 'date', seconds: Number(value.value) }
  if (value.__type === 'binary') return { type: 'bytes', value: base32(String(value.value)) }
  return { type: value.__type === 'token' ? 'token' : 'display-string', value: String(value.value) }
}

/** The case as one about an Item: list cases of one member hold for it as they are, the others must fail. */
function itemOf(vector: Vector): VectorItem | undefined {
  if (vector.must_fail === true || vector.expected === undefined) return undefined
  if (vector.header_type === 'item') return vector.expected as VectorItem // shape by header_type
  const members = vector.expected as VectorItem[] // shape by header_type
  return members.length === 1 ? members[0] : undefined
}

describe.each(files.filter(file => !file.startsWith('serialisation')))('structured field vectors: %s', file => {
  it.each(readVectors(file).map(vector => [vector.name, vector] as const))('%s', (_, vector) => {
    const result = parseItem((vector.raw ?? []).join(', '))
    const expected = itemOf(vector)
    if (expected === undefined) {
      expect(result).toEqual({ kind: 'malformed' })
      return
    }
    if (vector.can_fail === true && result.kind === 'malformed') return
    const parameters = new Map(expected[1].map(([name, value]) => [name, expectedItem(value)]))
    expect(result).toEqual({ kind: 'item', item: expectedItem(expected[0]), parameters })
  })
})

describe('serialising a String', () => {
  it.each(readVectors('serialisation-string-generated.json').map(v => [v.name, v] as const))(
    'refuses %s',
    (_, vector) => {
      const item = itemOf({ ...vector, must_fail: false })
      expect(serializeString(String(item?.[0]))).toEqual({ kind: 'not-ascii' })
    },
  )

  it('escapes the quote and the backslash and nothing else', () => {
    expect(serializeString('a"b\\c~ ')).toEqual({ kind: 'text', text: '"a\\"b\\\\c~ "' })
  })
})

describe('what the library misses', () => {
  it('accepts a date that is followed by something', () => {
    const result = parseItem('"k";t=@-12;u="@1;";v=2')
    expect(result).toMatchObject({ kind: 'item', item: { type: 'string', value: 'k' } })
    expect(result.kind === 'item' && [...result.parameters]).toEqual([
      ['t', { type: 'date', seconds: -12 }],
      ['u', { type: 'string', value: '@1;' }],
      ['v', { type: 'number', value: 2 }],
    ])
    expect(parseItem('@5 ')).toMatchObject({ item: { type: 'date', seconds: 5 } })
    expect(parseItem(' @5;a')).toMatchObject({ item: { type: 'date', seconds: 5 } })
  })

  it.each(['"k";t=@;v', '"k";t=@1.5;v', '"k";t=@1234567890123456;v', '"k" @1;v', '@1@2;v', '@ 1 '])(
    'refuses the broken date in %s',
    text => {
      expect(parseItem(text)).toEqual({ kind: 'malformed' })
    },
  )

  it('leaves the inside of strings alone', () => {
    expect(parseItem('"a\\"=@1;";v=@2;w')).toMatchObject({ item: { type: 'string', value: 'a"=@1;' } })
    expect(parseItem('%"a\\";v=@2;w')).toMatchObject({ item: { type: 'display-string', value: 'a\\' } })
  })

  it('does not take a token for a date', () => {
    const token = '*latchkey.date/1'
    expect(parseItem(token)).toMatchObject({ item: { type: 'token', value: token } })
    expect(parseItem(`${token};t=@1`)).toMatchObject({ item: { type: 'token', value: token } })
  })

  it('refuses characters outside ASCII anywhere', () => {
    expect(parseItem('%"\u0161"')).toEqual({ kind: 'malformed' })
  })
})
