import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Header, Outcome } from '../../ports/outcome.ts'
import { packOutcome, unpackOutcome } from './packed-outcome.ts'

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('content-type', 'application/json', '\0'),
)
const outcomes: fc.Arbitrary<Outcome> = fc.record({
  status: fc.integer({ min: 100, max: 599 }),
  version: fc.nat(),
  headers: fc.array(fc.tuple(text, text) as fc.Arbitrary<Header>, { maxLength: 5 }),
  body: fc.option(
    fc.uint8Array({ maxLength: 300 }).map(bytes => Buffer.from(bytes)),
    { nil: undefined },
  ),
})

describe('a packed outcome', () => {
  it('comes back as it was', () => {
    fc.assert(
      fc.property(outcomes, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (outcome, fence) => {
        expect(unpackOutcome(packOutcome(outcome, fence), fence)).toEqual(outcome)
      }),
    )
  })

  it('keeps repeated names, U+0000 and half a surrogate pair', () => {
    const headers: Header[] = [
      ['Link', 'a'],
      ['link', '\0'],
      ['x', '\ud800'],
    ]
    const outcome: Outcome = { status: 200, version: 1, headers, body: undefined }
    expect(unpackOutcome(packOutcome(outcome, 1), 1)).toEqual(outcome)
  })

  it('is nobody’s answer at another fence', () => {
    const packed = packOutcome({ status: 200, version: 1, headers: [], body: undefined }, 1)
    expect(unpackOutcome(packed, 2)).toBeUndefined()
  })

  it('is small: a JSON answer costs its body and nine bytes', () => {
    const body = Buffer.alloc(100)
    const packed = packOutcome({ status: 201, version: 1, headers: [['content-type', 'application/json']], body }, 1)
    expect(packed.length).toBeLessThanOrEqual(109)
  })

  it('is refused when it was cut, or when a newer version wrote it', () => {
    const headers: Header[] = [['x-request-cost', '12']]
    const packed = packOutcome({ status: 200, version: 1, headers, body: undefined }, 1)
    for (let length = 0; length < packed.length; length += 1) {
      expect(() => unpackOutcome(packed.subarray(0, length), 1)).toThrow(expect.objectContaining({ code: 'invariant' }))
    }
    expect(() => unpackOutcome(Buffer.from([0x90]), 1)).toThrow('format 9')
  })
})
