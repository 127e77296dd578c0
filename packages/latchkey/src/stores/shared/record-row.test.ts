import { describe, expect, it } from 'vitest'
import { stateCodes } from './codes.ts'
import { migrationsAfter } from './migrations.ts'
import { headersFromText, headersToText } from './outcome-codec.ts'
import { recordOf, type OutcomeRow, type RecordRow } from './record-row.ts'

const running: RecordRow & OutcomeRow = {
  id: '00000000-0000-0000-0000-000000000001',
  scope: 'tenant',
  operation: 'payments.create',
  state: stateCodes.in_progress,
  recovery: 1,
  fingerprint: new Uint8Array([1]),
  fence: '3',
  claim_id: '00000000-0000-0000-0000-000000000002',
  attempts: 3n,
  crashes: 0,
  locked_until_ms: 1_000.4,
  due_at_ms: null,
  created_at_ms: '900.9',
  completed_at_ms: null,
  expires_at_ms: 5_000,
  parked_at_ms: null,
  tombstone_ms: null,
  gone_at_ms: null,
  description: null,
  last_error_code: null,
}
const failed = { ...running, state: stateCodes.failed_retryable, locked_until_ms: null, due_at_ms: 1_200 }

const done = { state: stateCodes.completed, locked_until_ms: null, completed_at_ms: 950 }

describe('a row of an SQL store', () => {
  it('is read alike from numbers, texts and bigints', () => {
    expect(recordOf(running, 500)).toMatchObject({ fence: 3, attempts: 3, createdAtMs: 900, recovery: 'rerun' })
  })

  it('has a lease left until the very end of it', () => {
    expect(recordOf(running, 1_000).leaseLeftMs).toBe(1)
    expect(recordOf(running, 1_000.4).leaseLeftMs).toBe(0)
    expect(recordOf(running, 2_000.4).leaseLeftMs).toBe(-1_000)
    expect(recordOf(failed, 500).leaseLeftMs).toBe(0)
  })

  it('is due when its time has come', () => {
    expect(recordOf(failed, 1_000).dueInMs).toBe(200)
    expect(recordOf(failed, 1_300).dueInMs).toBe(-100)
  })

  it('expires only when it is finished and not parked', () => {
    expect(recordOf(failed, 5_000).expired).toBe(true)
    expect(recordOf(failed, 4_999).expired).toBe(false)
    expect(recordOf(running, 9_000).expired).toBe(false)
    expect(recordOf({ ...failed, parked_at_ms: 1 }, 9_000)).toMatchObject({ expired: false, parked: true })
  })

  it('has an outcome only when it is completed', () => {
    const outcome = { outcome_status: 204, outcome_version: '2', outcome_headers: '[]', outcome_body: null }
    expect(recordOf({ ...running, ...outcome }, 0).outcome).toBeUndefined()
    const completed = { ...running, ...outcome, state: 2, locked_until_ms: null, completed_at_ms: 950 }
    const expected = { status: 204, version: 2, headers: [], body: undefined }
    expect(recordOf(completed, 0)).toMatchObject({ completedAtMs: 950, outcome: expected })
  })

  it('is gone, without its outcome, from its expiry to the end of its tombstone, before and after the reaper came', () => {
    const outcome = { outcome_status: 204, outcome_version: 1, outcome_headers: '[]', outcome_body: null }
    const completed = {
      ...running,
      ...outcome,
      state: stateCodes.completed,
      completed_at_ms: 950,
      tombstone_ms: '1000',
    }
    const stripped = { ...completed, expires_at_ms: 6_000, gone_at_ms: 5_500 }
    expect(recordOf(completed, 4_999)).toMatchObject({ gone: false, expired: false, outcome: { status: 204 } })
    for (const row of [completed, stripped]) {
      for (const nowMs of [5_600, 5_999]) {
        expect(recordOf(row, nowMs)).toMatchObject({ gone: true, expired: false, outcome: undefined })
      }
      expect(recordOf(row, 6_000)).toMatchObject({ gone: false, expired: true })
    }
    expect(recordOf({ ...failed, tombstone_ms: 1_000 }, 5_000)).toMatchObject({ gone: false, expired: true })
  })

  it('is unreadable when a newer version wrote it, with all that can be read of it', () => {
    const facts = { id: running.id, scope: 'tenant', operation: 'payments.create', fence: 3, createdAtMs: 900 }
    for (const [damage, why] of [
      [{ state: 9 }, /state holds 9/],
      [{ recovery: 9 }, /recovery holds 9/],
      [{ ...done, outcome_packed: Buffer.from([0xf0, 0, 200]) }, /format 15/],
      [{ ...done, outcome_packed: Buffer.from([0x10, 0]) }, /ends before/],
      [{ ...done, outcome_packed: Buffer.from([0x10, 0, 200, 3, 1, 0xff, 0xff, 0x7f]) }, /headers/],
      [{ ...done, outcome_status: 200, outcome_headers: '{}' }, /stored headers/],
      [{ ...done, outcome_status: null, outcome_packed: null }, /no outcome/],
    ] as const) {
      const record = recordOf({ ...running, ...damage }, 0)
      expect(record).toMatchObject({ ...facts, state: 'unreadable', recovery: undefined, outcome: undefined })
      expect(record).toMatchObject({ why: expect.stringMatching(why) })
    }
  })

  it('is read without its outcome when it has expired, or where the outcome was not asked for', () => {
    expect(recordOf({ ...running, ...done, outcome_packed: Buffer.from([0xf0]) }, 5_000)).toMatchObject({
      state: 'completed',
      expired: true,
    })
    expect(recordOf({ ...running, ...done }, 0)).toMatchObject({ state: 'completed', outcome: undefined })
  })
})

describe('stored headers', () => {
  it('come back in order, with repeated names and any character', () => {
    const headers = [
      ['Link', 'a'],
      ['link', 'b'],
      ['__proto__', '\0\ud800"\\'],
    ] as const
    expect(headersFromText(headersToText(headers))).toEqual(headers)
  })

  it('are refused when they are something else', () => {
    for (const text of ['{}', '[["a"]]', '[["a",1]]']) expect(() => headersFromText(text)).toThrow('[name, value]')
  })
})

describe('migrations', () => {
  const steps = [1, 2, 3].map(version => ({ version, name: `step ${version}`, sql: '' }))

  it('begin after what was applied, and end there when the database is ahead', () => {
    expect(migrationsAfter(steps, 1).map(step => step.version)).toEqual([2, 3])
    expect(migrationsAfter(steps, 99)).toEqual([])
  })

  it('run once each where a number is missing', () => {
    const gap = steps.filter(step => step.version !== 2)
    expect(migrationsAfter(gap, 0).map(step => step.version)).toEqual([1, 3])
    expect(migrationsAfter(gap, 1).map(step => step.version)).toEqual([3])
  })

  it('are refused out of order', () => {
    expect(() => migrationsAfter(steps.toReversed(), 0)).toThrow('does not follow 3')
  })
})
