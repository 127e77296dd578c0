import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { framePairs } from './form-pairs.ts'
import { frame } from './framing.ts'

/** The plain way: a pattern for the escapes, and a buffer for each piece. */
function reference(text: string): Uint8Array {
  const decoded = (piece: string) =>
    piece
      .replaceAll('+', ' ')
      .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  const pairs = Buffer.from(text)
    .toString('latin1')
    .split('&')
    .filter(pair => pair !== '')
    .map(pair => {
      const [name = '', ...rest] = pair.split('=')
      return [decoded(name), decoded(rest.join('='))] as const
    })
  pairs.sort(([a], [b]) => Buffer.compare(Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1')))
  return frame(pairs.flat().map(piece => Buffer.from(piece, 'latin1')))
}

describe('the pairs of a form', () => {
  it('are read as the plain way reads them', () => {
    const pieces = fc.constantFrom('a', 'b', '&', '=', '+', '%', '%4', '%41', '%e9', '%zz', '%%41', 'é', 'x'.repeat(40))
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 20 }), parts => {
        expect(framePairs(parts.join(''))).toEqual(reference(parts.join('')))
      }),
      { numRuns: 3_000 },
    )
  })
})
