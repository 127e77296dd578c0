import { describe, expect, it } from 'vitest'
import { keptByDefault, settingsOf } from './settings.ts'

const hour = 3_600_000

describe('settings', () => {
  it('has the documented defaults', () => {
    expect(settingsOf('orders', {})).toMatchObject({
      retentionMs: 24 * hour,
      leaseMs: 30_000,
      holdMsMax: 900_000,
      waitMs: 10_000,
      outcomeBytesMax: 1_048_576,
      whenInProgress: 'refuse',
      missingKey: 'refuse',
      keyNamespace: 'operation',
      ifStoreDown: 'refuse',
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
        message: `orders: ${name} must be a positive number and is ${value}`,
      }),
    )
  })

  it('refuses a retention under lease and maximum hold, allowed short or not', () => {
    const short = { retentionMs: 1_000, leaseMs: 600, holdMsMax: 600, allowShortRetention: true }
    expect(() => settingsOf('orders', short)).toThrow('retentionMs 1000 is under lease + maximum hold (1200)')
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

  it('refuses fingerprint options that contradict each other', () => {
    expect(() => settingsOf('orders', { fingerprint: { include: [] } })).toThrow(
      expect.objectContaining({ code: 'misconfigured' }),
    )
  })
})

describe('what is kept by default', () => {
  it.each([200, 201, 204, 301, 304, 400, 402, 404, 409, 410, 422, 451])('keeps %d', status => {
    expect(keptByDefault(status)).toBe(true)
  })
  it.each([401, 403, 408, 425, 429, 500, 502, 503, 504])('does not keep %d', status => {
    expect(keptByDefault(status)).toBe(false)
  })
})
