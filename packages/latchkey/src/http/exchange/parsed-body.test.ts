import { describe, expect, it } from 'vitest'
import { fingerprintRequest } from '../../engine/fingerprint/fingerprint.ts'
import { parsedBody } from './parsed-body.ts'

const cure = 'mount captureBody() before the parser'
const form = 'application/x-www-form-urlencoded; charset=utf-8'
const bytesOf = (value: unknown, type = 'application/json') => {
  const read = parsedBody(value, type, cure)
  return read.kind === 'bytes' ? Buffer.from(read.bytes).toString() : read
}

describe('a body of which only the parsed value is left', () => {
  it('stands for itself, whatever the order of its names', () => {
    expect(bytesOf({ b: [1, { d: null, c: 'x' }], a: 1.5 })).toBe('{"a":1.5,"b":[1,{"c":"x","d":null}]}')
    expect(bytesOf({ a: 1.5, b: [1, { c: 'x', d: null }] })).toBe(bytesOf({ b: [1, { d: null, c: 'x' }], a: 1.5 }))
    expect(bytesOf({ b: '2', a: ['1'] }, form)).toBe(bytesOf({ a: ['1'], b: '2' }, form))
  })

  it.each([
    ['a plus sign from a space', '+49', ' 49'],
    ['an escape from what it stands for', '%41', 'A'],
    ['one order of ampersands from another', 'p&x&y&q', 'p&y&x&q'],
  ])('tells %s, although the fingerprint reads forms as pairs', (_, one, other) => {
    const fingerprintOf = (text: string) => {
      const read = parsedBody({ text }, form, cure)
      const body = read.kind === 'bytes' ? read.bytes : Buffer.from('refused')
      const parts = { method: 'POST', path: '/', query: '', mediaType: form, header: () => undefined, body }
      return Buffer.from(fingerprintRequest(parts)).toString('hex')
    }
    expect(fingerprintOf(one)).toBe(fingerprintOf(one))
    expect(fingerprintOf(one)).not.toBe(fingerprintOf(other))
  })

  it('passes text and bytes on', () => {
    expect([bytesOf('plain', 'text/plain'), bytesOf(Buffer.from('raw'))]).toEqual(['plain', 'raw'])
  })

  // One of each pair could be taken for the other, by its text or by its bytes.
  const lookalikes: [unknown, unknown][] = [
    [5, '5'],
    [true, 'true'],
    [null, 'null'],
    [null, ''],
    [{ a: 1 }, '{"a":1}'],
    [[], '[]'],
    ['5', '"5"'],
    ['\ud800', '\ufffd'],
    ['\ud800', '\\ud800'],
  ]
  const types = [
    'application/json',
    'application/vnd.api+json; charset=utf-8',
    form,
    'text/plain',
    'application/xml',
    '',
  ]

  it.each(types)('tells each value from its look-alike under %j', type => {
    const fingerprintOf = (value: unknown) => {
      const read = parsedBody(value, type, cure)
      if (read.kind !== 'bytes') throw new Error(`refused: ${read.kind}`)
      const parts = { method: 'POST', path: '/', query: '', mediaType: type, header: () => undefined, body: read.bytes }
      return Buffer.from(fingerprintRequest(parts)).toString('hex')
    }
    for (const [one, other] of lookalikes) {
      expect(fingerprintOf(one)).toBe(fingerprintOf(structuredClone(one)))
      expect(fingerprintOf(one), JSON.stringify([one, other])).not.toBe(fingerprintOf(other))
    }
  })

  it.each([
    ['an integer past 2^53', JSON.parse('{"id":9007199254740993}'), 'application/json'],
    ['a number past all measure', JSON.parse('[1e400]'), 'application/json'],
    ['a multipart body', { file: {} }, 'multipart/form-data; boundary=x'],
    ['what is no JSON', { when: () => 1 }, 'application/json'],
    ['what JSON would empty', { when: new Map([[1, 2]]) }, 'application/json'],
  ])('is refused with the cure where it holds %s', (_, value, type) => {
    expect(parsedBody(value, type, cure)).toEqual({ kind: 'unsupported', cure })
  })

  it('is refused as consumed where nothing of it is left', () => {
    expect(parsedBody(undefined, 'application/json', cure)).toEqual({ kind: 'unreadable', cure })
  })

  it('is too large where it is nested deeper than 256 levels', () => {
    const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
    expect(parsedBody(nested(256), 'application/json', cure).kind).toBe('bytes')
    for (const levels of [257, 9_000, 500_000]) {
      expect(parsedBody(nested(levels), 'application/json', cure)).toEqual({
        kind: 'too-large',
        max: 256,
        unit: 'levels',
      })
    }
  })
})
