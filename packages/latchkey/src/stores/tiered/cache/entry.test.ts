import { describe, expect, it } from 'vitest'
import type { ReadableRecord } from '../../../ports/store.ts'
import { decodeEntry, encodeEntry } from './entry.ts'

const id = '6f1c1d0e-0000-4000-8000-000000000001'
const epoch = '6f1c1d0e-0000-4000-8000-00000000000e'
const completed: ReadableRecord = {
  id,
  scope: 'tenant',
  operation: 'payments.create',
  state: 'completed',
  recovery: 'hold',
  fingerprint: Buffer.from([0, 255, 128]),
  fence: 2 ** 52,
  claimId: id,
  attempts: 2,
  crashes: 1,
  leaseLeftMs: 0,
  dueInMs: 0,
  expired: false,
  gone: false,
  parked: false,
  createdAtMs: 1_000,
  ageMs: 50,
  completedAtMs: 1_010,
  expiresAtMs: 90_000,
  description: undefined,
  lastErrorCode: undefined,
  outcome: {
    status: 201,
    version: 3,
    headers: [
      ['link', 'a'],
      ['link', '\ud800\u0000'],
    ],
    body: Buffer.from([0, 1, 255]),
  },
}
const encoded = encodeEntry(completed, epoch, { livesMs: 10_000, elapsedMs: 5 })

describe('an entry', () => {
  it('is the row, as old as it is by now', () => {
    expect(decodeEntry(id, encoded, 10_000)).toStrictEqual({ ...completed, ageMs: 55 })
    expect(decodeEntry(id, encoded, 9_000)).toStrictEqual({ ...completed, ageMs: 1_055 })
  })

  it.each([
    ['a body that was not stored', { ...completed.outcome, body: undefined }],
    ['an empty body', { ...completed.outcome, body: Buffer.alloc(0) }],
  ])('has %s', (_, outcome) => {
    const record = { ...completed, outcome } as ReadableRecord
    const bytes = encodeEntry(record, epoch, { livesMs: 10_000, elapsedMs: 0 })
    expect(decodeEntry(id, bytes, 10_000)?.outcome).toStrictEqual(outcome)
  })

  it('tells how much of a lease is left by now', () => {
    const held: ReadableRecord = { ...completed, state: 'in_progress', leaseLeftMs: 900, outcome: undefined }
    const bytes = encodeEntry(held, epoch, { livesMs: 500, elapsedMs: 10 })
    expect(decodeEntry(id, bytes, 400)).toStrictEqual({ ...held, leaseLeftMs: 790, ageMs: 160 })
  })

  it('is none past its time, and none that has more time left than it was given', () => {
    expect([0, -1, -2, 10_001].map(leftMs => decodeEntry(id, encoded, leftMs))).toEqual(Array(4).fill(undefined))
  })

  it('is none of another row', () => {
    expect(decodeEntry(epoch, encoded, 10_000)).toBeUndefined()
  })

  it('is none with any byte wrong, but for its epoch, and none that is cut', () => {
    for (let at = 0; at < encoded.length; at += 1) {
      if (at > 0 && at < 37) continue
      const wrong = Buffer.from(encoded)
      wrong[at] = (wrong[at] ?? 0) ^ 1
      expect(decodeEntry(id, wrong, 10_000)).toBeUndefined()
    }
    for (let length = 0; length < encoded.length; length += 1)
      expect(decodeEntry(id, encoded.subarray(0, length), 10_000)).toBeUndefined()
  })
})
