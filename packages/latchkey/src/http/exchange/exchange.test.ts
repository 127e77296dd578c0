import { describe, expect, it } from 'vitest'
import { mergeHeaders } from './answers/merge-headers.ts'
import { addedHeaders } from './exchange.ts'

describe('headers set after Latchkey began', () => {
  it('are the new, the changed and the appended ones', () => {
    const before = [
      ['X-Outer', '1'],
      ['Vary', 'Origin'],
      ['Cache-Control', 'private'],
    ] as const
    const after = [
      ['x-outer', '1'],
      ['Vary', 'Origin'],
      ['Vary', 'Accept'],
      ['Cache-Control', 'no-cache'],
      ['ETag', '"1"'],
    ] as const
    expect(addedHeaders(before, after)).toEqual([
      ['Vary', 'Accept'],
      ['Cache-Control', 'no-cache'],
      ['ETag', '"1"'],
    ])
  })
})

describe('an answer of ours on top of what outer middleware set', () => {
  it('replaces a name, and adds to a field that grows without repeating a value', () => {
    const outer = [
      ['Content-Type', 'text/plain'],
      ['Vary', 'Origin'],
      ['X-Outer', '1'],
    ] as const
    const own = [
      ['content-type', 'application/json'],
      ['Vary', 'Accept'],
      ['vary', 'Origin'],
    ] as const
    expect(mergeHeaders(outer, own)).toEqual([
      ['Vary', 'Origin'],
      ['X-Outer', '1'],
      ['content-type', 'application/json'],
      ['Vary', 'Accept'],
    ])
  })
})
