import { describe, expect, it } from 'vitest'
import { settingsOf } from './options.ts'

const hour = 3_600_000

describe('settings', () => {
  it('has the documented defaults', () => {
    expect(settingsOf('orders', {})).toMatchObject({
      retentionMs: 24 * hour,
      leaseMs: 30_000,
      holdMsMax: 900_000,
      waitMs: 10_000,
      outcomeBytesMax: 1_048_576,
      bodyBytesMax: 1_048_576,
      onInProgress: 'refuse',
      onMissingKey: 'refuse',
      keyNamespace: 'operation',
      onStoreDown: 'refuse',
      methods: ['POST', 'PATCH'],
    })
  })

  it.each([
    ['retentionMs', 0],
    ['retentionMs', Number.NaN],
    ['retentionMs', Number.POSITIVE_INFINITY],
    ['waitMs', 0],
    ['leaseMs', -1],
    ['holdMsMax', 0],
    ['outcomeBytesMax', 0],
  ])('refuses %s %d, naming operation, option and value', (name, value) => {
    expect(() => settingsOf('orders', { [name]: value })).toThrow(
      expect.objectContaining({
        code: 'misconfigured',
        message: expect.stringMatching(new RegExp(`^orders: ${name} must be a .* \\(got ${value}\\)$`)),
      }),
    )
  })

  it.each<[unknown, string]>([
    ['PayPal-Request-Id', 'orders: key must be a function, or an object of options'],
    [{ header: 'PayPal Request Id' }, "orders: key.header must be the name of a header (got 'PayPal Request Id')"],
    [{ heade: 'X' }, 'orders: unknown option key.heade: did you mean key.header?'],
    [{}, "orders: key must name a header, such as { header: 'PayPal-Request-Id' }, or be a function"],
  ])('refuses the key %j', (key, message) => {
    // As JavaScript hands it in.
    expect(() => settingsOf('orders', { key: key as never })).toThrow(message)
  })

  it('refuses a retention under lease and maximum hold, allowed short or not', () => {
    const short = { retentionMs: 1_000, leaseMs: 600, holdMsMax: 600, allowShortRetention: true }
    expect(() => settingsOf('orders', short)).toThrow(
      'retentionMs must be at least leaseMs + holdMsMax, 1200 (got 1000)',
    )
    expect(settingsOf('orders', { ...short, retentionMs: 1_200 }).retentionMs).toBe(1_200)
  })

  it('refuses a retention under one hour that nobody allowed', () => {
    const brief = { retentionMs: hour - 1, leaseMs: 1_000, holdMsMax: 1_000 }
    expect(() => settingsOf('orders', brief)).toThrow('allowShortRetention: true')
    expect(settingsOf('orders', { ...brief, allowShortRetention: true }).retentionMs).toBe(hour - 1)
    expect(settingsOf('orders', { ...brief, retentionMs: hour }).retentionMs).toBe(hour)
  })

  it.each(['leaseMs', 'holdMsMax', 'waitMs'])(
    'refuses a %s longer than a timer can be, which would fire at once',
    name => {
      const forever = { retentionMs: 400 * 24 * hour, [name]: 2 ** 31 }
      expect(() => settingsOf('orders', forever)).toThrow(expect.objectContaining({ code: 'misconfigured' }))
    },
  )

  it.each([
    ['a tombstone of 0', { onExpiry: 'gone', tombstoneMs: 0 }, 'tombstoneMs must be a number above 0'],
    ['a tombstone for keys that are new again', { tombstoneMs: hour }, "tombstoneMs requires onExpiry: 'gone'"],
    ['another word for gone', { onExpiry: 'forget' }, `onExpiry must be 'run' or 'gone' (got 'forget')`],
    ['a time of requests without a limit', { requestTime: (): number => 0 }, 'requestTime requires requestAgeMsMax'],
    ['a limit for requests without a time', { requestAgeMsMax: hour }, 'requestAgeMsMax requires requestTime'],
    ['an age of 0', { keyAgeMsMax: 0 }, 'keyAgeMsMax must be a number above 0'],
    [
      'an age that outlives the row',
      { keyAgeMsMax: 25 * hour },
      'keyAgeMsMax must be at most 86400000, as long as rows are stored',
    ],
    [
      'an age of requests that outlives the row',
      { requestAgeMsMax: 25 * hour, requestTime: (): number => 0 },
      'requestAgeMsMax must be at most 86400000, as long as rows are stored (got 90000000)',
    ],
  ])('refuses %s', (_, options, message) => {
    // As JavaScript may call it.
    const given = options as unknown as Parameters<typeof settingsOf>[1]
    expect(() => settingsOf('orders', given)).toThrow(
      expect.objectContaining({ code: 'misconfigured', message: expect.stringContaining(message) }),
    )
  })

  it('takes an age up to what is known of a key, tombstone included', () => {
    expect(settingsOf('orders', { keyAgeMsMax: 24 * hour }).keyAgeMsMax).toBe(24 * hour)
    const gone = { onExpiry: 'gone', keyAgeMsMax: 31 * 24 * hour } as const
    expect(settingsOf('orders', gone)).toMatchObject({ tombstoneMs: 30 * 24 * hour })
    expect(() => settingsOf('orders', { ...gone, keyAgeMsMax: 31 * 24 * hour + 1 })).toThrow('in the gap')
  })

  it('refuses fingerprint options that contradict each other', () => {
    expect(() => settingsOf('orders', { fingerprint: { include: [] } })).toThrow(
      expect.objectContaining({ code: 'misconfigured' }),
    )
  })
})
