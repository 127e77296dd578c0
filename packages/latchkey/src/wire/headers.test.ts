import { describe, expect, it } from 'vitest'
import { acceptsEncoding } from './headers.ts'

describe('accepted encodings', () => {
  it.each<[string | undefined, string, boolean]>([
    [undefined, 'gzip', true],
    ['', 'gzip', false],
    ['', 'identity', true],
    ['gzip', 'gzip', true],
    ['GZIP', 'x-gzip', true],
    ['gzip', 'br', false],
    ['gzip;q=0', 'gzip', false],
    ['gzip; q = 0.000', 'gzip', false],
    ['gzip;q=nonsense', 'gzip', false],
    ['gzip;q=0.5, br', 'gzip', true],
    ['*', 'zstd', true],
    ['*;q=0', 'gzip', false],
    ['*;q=0, gzip', 'gzip', true],
    ['*, gzip;q=0', 'gzip', false],
    ['gzip', 'identity', true],
    ['identity;q=0', 'identity', false],
    ['*;q=0', 'identity', false],
    ['gzip, br', 'gzip, br', true],
    ['gzip', 'gzip, br', false],
  ])('Accept-Encoding %j with %s: %s', (accept, coding, accepted) => {
    expect(acceptsEncoding(accept, coding)).toBe(accepted)
  })
})
