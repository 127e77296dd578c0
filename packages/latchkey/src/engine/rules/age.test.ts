import { describe, expect, it } from 'vitest'
import { isRequestTooOld, keyAge } from '../request.ts'
import { ageOfKey } from './age.ts'

const minute = 60_000
const hour = 60 * minute
const now = Date.UTC(2026, 4, 1)
const at = (nowMs: number) => ({ nowMs: () => nowMs })

/** A UUIDv7 of that time. */
function keyOf(atMs: number): string {
  const time = atMs.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7abc-8def-0123456789ab`
}

describe('the age of a key', () => {
  it('is of no interest without a limit', () => {
    expect(keyAge({}, 'anything', at(now))).toEqual({ kind: 'fine' })
  })

  it('is read out of the example of RFC 9562', () => {
    // Tuesday, February 22, 2022 2:22:22.00 PM GMT-05:00.
    const key = '017F22E2-79B0-7CC3-98C4-DC0C0C07398F'
    const madeAtMs = 1_645_557_742_000
    expect(ageOfKey(key, hour, madeAtMs + hour)).toEqual({ kind: 'fine' })
    expect(ageOfKey(key, hour, madeAtMs + hour + 1)).toEqual({ kind: 'too-old' })
  })

  it('may lie a little ahead, and not far', () => {
    expect(ageOfKey(keyOf(now + 5 * minute), hour, now)).toEqual({ kind: 'fine' })
    const ahead = ageOfKey(keyOf(now + 5 * minute + 1), hour, now)
    expect(ahead).toMatchObject({ kind: 'invalid', detail: expect.stringContaining('5 minutes ahead') })
  })

  it.each([
    ['words', 'order-17'],
    ['a random UUID', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
    ['a UUID without its variant', '017f22e2-79b0-7cc3-18c4-dc0c0c07398f'],
    ['more than a UUID', `${keyOf(now)}0`],
  ])('cannot be read out of %s, and the refusal names the cure', (_, key) => {
    const age = ageOfKey(key, hour, now)
    expect(age).toMatchObject({ kind: 'invalid', detail: expect.stringContaining('UUID of version 7') })
  })
})

describe('the age of a request', () => {
  const tooOld = (said: unknown) =>
    isRequestTooOld({ requestTime: () => said as number, requestAgeMsMax: hour }, {}, at(now))

  it('is counted from a number or a date', () => {
    expect([tooOld(now - hour), tooOld(new Date(now - hour)), tooOld(now + 5 * minute)]).toEqual([false, false, false])
    expect([tooOld(now - hour - 1), tooOld(new Date(now - hour - 1))]).toEqual([true, true])
  })

  it.each([
    ['nothing', undefined],
    ['no number', Number.NaN],
    ['an invalid date', new Date('tomorrow')],
    ['a time far ahead', now + 5 * minute + 1],
  ])('counts as too old where the request says %s', (_, said) => {
    expect(tooOld(said)).toBe(true)
  })

  it('counts as too old where asking throws, and as fine where nobody asks', () => {
    const requestTime = () => {
      throw new Error('no such header')
    }
    expect(isRequestTooOld({ requestTime, requestAgeMsMax: hour }, {}, at(now))).toBe(true)
    expect(isRequestTooOld({}, {}, at(now))).toBe(false)
  })
})
