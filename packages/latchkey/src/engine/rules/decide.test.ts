import { describe, expect, it } from 'vitest'
import type { Outcome } from '../../ports/outcome.ts'
import type { ReadableRecord } from '../../ports/store.ts'
import { decide } from './decide.ts'
import { fingerprintInput, fingerprintRequest } from '../fingerprint/fingerprint.ts'

const fingerprint = fingerprintInput({ amount: 1 })
const outcome: Outcome = { status: 201, headers: [], body: new Uint8Array(), version: 1 }

function record(over: Partial<ReadableRecord> = {}): ReadableRecord {
  return {
    id: '00000000-0000-0000-0000-000000000001',
    scope: 'acme',
    operation: 'payments.create',
    state: 'in_progress',
    recovery: 'hold',
    fingerprint,
    fence: 1,
    claimId: '00000000-0000-0000-0000-000000000002',
    attempts: 1,
    crashes: 0,
    leaseLeftMs: 20_000,
    ageMs: 0,
    dueInMs: 0,
    expired: false,
    gone: false,
    parked: false,
    createdAtMs: 0,
    completedAtMs: undefined,
    expiresAtMs: 1,
    description: undefined,
    lastErrorCode: undefined,
    outcome: undefined,
    ...over,
  }
}

describe('decide', () => {
  it('replays what is completed, also with an empty body', () => {
    expect(decide(record({ state: 'completed', outcome }), fingerprint)).toEqual({ kind: 'replay', outcome })
  })

  it('tells of an answer that was too large, and never runs it again', () => {
    const bodiless = { ...outcome, body: undefined }
    expect(decide(record({ state: 'completed', outcome: bodiless }), fingerprint)).toEqual({
      kind: 'not-stored',
      outcome: bodiless,
    })
  })

  it('runs nothing of a row that cannot be read, and claims it again once it has expired', () => {
    const why = 'column state holds 7'
    const unreadable = { ...record(), state: 'unreadable', recovery: undefined, outcome: undefined, why } as const
    expect(decide(unreadable, fingerprint)).toEqual({ kind: 'unreadable', why })
    expect(decide({ ...unreadable, expired: true }, fingerprint)).toEqual({ kind: 'claim-again' })
    expect(decide({ ...unreadable, gone: true }, fingerprint)).toEqual({ kind: 'gone' })
  })

  it('takes neither a missing outcome nor a fingerprint that is cut off for another request or for an absent row', () => {
    expect(decide(record({ state: 'completed' }), fingerprint)).toMatchObject({ kind: 'unreadable' })
    const cut = fingerprint.subarray(0, 9)
    expect(decide(record({ fingerprint: cut }), fingerprint)).toMatchObject({ kind: 'unreadable' })
  })

  it('tells that a key is used up where a tombstone is kept, whatever is asked under it', () => {
    const gone = record({ state: 'completed', gone: true })
    expect(decide(gone, fingerprint)).toEqual({ kind: 'gone' })
    expect(decide(gone, fingerprintInput({ amount: 2 }))).toEqual({ kind: 'gone' })
    const another = Uint8Array.from(fingerprint)
    another[0] = 9
    expect(decide(gone, another)).toEqual({ kind: 'gone' })
  })

  it('claims what is pending and due, and waits for what is not', () => {
    const pending = record({ state: 'pending', recovery: 'resume', leaseLeftMs: 0 })
    expect(decide(pending, fingerprint)).toEqual({ kind: 'claim-again' })
    expect(decide({ ...pending, dueInMs: 70 }, fingerprint)).toEqual({ kind: 'not-due', dueInMs: 70 })
    expect(decide({ ...pending, parked: true }, fingerprint)).toEqual({ kind: 'parked' })
  })

  it('refuses while the owner is alive, with what its lease has left', () => {
    expect(decide(record(), fingerprint)).toEqual({ kind: 'running' })
  })

  it('sweeps a dead owner under hold, and claims over one under rerun', () => {
    expect(decide(record({ leaseLeftMs: 0 }), fingerprint)).toEqual({ kind: 'sweep' })
    expect(decide(record({ leaseLeftMs: -5, recovery: 'rerun' }), fingerprint)).toEqual({ kind: 'claim-again' })
    expect(decide(record({ leaseLeftMs: 1, recovery: 'rerun' }), fingerprint)).toEqual({ kind: 'running' })
  })

  it('keeps an unknown row unknown', () => {
    expect(decide(record({ state: 'unknown', leaseLeftMs: 0 }), fingerprint)).toEqual({ kind: 'unknown' })
  })

  it('waits until a failed row is due, then claims again', () => {
    const failed = { state: 'failed_retryable', leaseLeftMs: 0 } as const
    expect(decide(record({ ...failed, dueInMs: 700 }), fingerprint)).toEqual({ kind: 'not-due', dueInMs: 700 })
    expect(decide(record(failed), fingerprint)).toEqual({ kind: 'claim-again' })
    expect(decide(record({ ...failed, parked: true }), fingerprint)).toEqual({ kind: 'parked' })
  })

  it('takes an expired row as absent, whoever asked for what', () => {
    const expired = record({ state: 'completed', outcome, expired: true })
    expect(decide(expired, fingerprint)).toEqual({ kind: 'claim-again' })
    expect(decide(expired, fingerprintInput({ amount: 2 }))).toEqual({ kind: 'claim-again' })
  })

  it.each(['in_progress', 'completed', 'failed_retryable', 'unknown'] as const)(
    'says misuse before anything else of a row that is %s',
    state => {
      const decision = decide(
        record({ state, outcome: state === 'completed' ? outcome : undefined }),
        fingerprintInput({ amount: 2 }),
      )
      expect(decision).toEqual({ kind: 'misuse', differs: ['body'] })
    },
  )

  it('names each part that differs', () => {
    const asked = {
      method: 'POST',
      path: '/orders/1',
      query: '',
      mediaType: 'text/plain',
      body: Buffer.from('a'),
      header: () => undefined,
    }
    const stored = record({ fingerprint: fingerprintRequest(asked) })
    expect(decide(stored, fingerprintRequest({ ...asked, path: '/orders/2' }))).toEqual({
      kind: 'misuse',
      differs: ['path'],
    })
    expect(decide(stored, fingerprintRequest({ ...asked, method: 'PATCH', query: 'a=1' }))).toEqual({
      kind: 'misuse',
      differs: ['method', 'query'],
    })
  })

  it('never calls it misuse when the versions differ', () => {
    const older = new Uint8Array(fingerprint)
    older[0] = 0
    expect(decide(record({ fingerprint: older }), fingerprint)).toEqual({ kind: 'compare-by', version: 0 })
  })
})
