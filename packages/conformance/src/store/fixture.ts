/** What the store cases start from: requests, answers, and a row in each state that can be reached. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type {
  AtomicRequest,
  Claim,
  ClaimRequest,
  ClaimResult,
  Failure,
  Identity,
  KeyRecord,
  Outcome,
  State,
  Store,
} from 'latchkey'
import type { StoreHarness } from '../store-harness.ts'

/** Real servers' clocks run by themselves: every span is so long that a slow machine cannot exceed it by accident. */
export const minuteMs = 60_000
export const hourMs: number = 60 * minuteMs
export const leaseMs: number = 10 * minuteMs
export const expiresInMs: number = 24 * hourMs
export const retentionMs: number = 2 * hourMs

export const act = { by: 'on-call', reason: 'the provider shows one charge' } as const
export const retryNow: Failure = { to: 'failed_retryable', errorCode: 'ECONNREFUSED', dueInMs: 0 }
export const notKnown: Failure = { to: 'unknown', errorCode: 'TimeoutError', dueInMs: 0 }

export function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

let grants = 0
export function newClaimId(): string {
  grants += 1
  return uuidOf(`claim ${grants}`)
}

export function identity(key: string, over: Partial<Identity> = {}): Identity {
  return { id: uuidOf(`key ${key}`), scope: 'tenant-1', operation: 'payments.create', ...over }
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

export function request(key: string, over: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    identity: identity(key),
    claimId: newClaimId(),
    fingerprint: bytes('v1 the same request'),
    recovery: 'hold',
    leaseMs,
    expiresInMs,
    description: undefined,
    ...over,
  }
}

export const otherFingerprint: Uint8Array = bytes('v1 another request')

export function atomicRequest(key: string, over: Partial<AtomicRequest> = {}): AtomicRequest {
  const { identity, claimId, fingerprint, description } = request(key)
  return { identity, claimId, fingerprint, retentionMs, description, ...over }
}

export function answer(text = 'done', over: Partial<Outcome> = {}): Outcome {
  return { status: 201, headers: [['content-type', 'text/plain']], body: bytes(text), version: 1, ...over }
}

/** Claims, and fails unless the claim is granted. */
export async function own(store: Store, key: string, over: Partial<ClaimRequest> = {}): Promise<Claim> {
  return won(await store.claim(request(key, over))).claim
}

export function won(result: ClaimResult): Extract<ClaimResult, { kind: 'won' }> {
  assert.equal(result.kind, 'won', `expected the claim to be granted, but saw ${describe(result)}`)
  return result
}

export function seen(result: ClaimResult): KeyRecord {
  assert.equal(result.kind, 'seen', `expected the claim to be refused, but it was granted: ${describe(result)}`)
  return result.record
}

function describe(result: ClaimResult): string {
  return result.kind === 'won' ? `from ${result.from}` : `a row in state ${result.record.state}`
}

export async function recordOf(store: Store, id: string): Promise<KeyRecord> {
  const record = await store.read(id)
  assert.ok(record, `expected a row for ${id}, found none`)
  return record
}

export async function assertState(store: Store, id: string, state: State | undefined): Promise<void> {
  assert.equal((await store.read(id))?.state, state)
}

/** The parts of a record that do not change as the clock runs. */
export function still(record: KeyRecord): object {
  const { leaseLeftMs: _lease, dueInMs: _due, ageMs: _age, ...rest } = record
  return { ...rest, fingerprint: hex(rest.fingerprint), outcome: rest.outcome && plain(rest.outcome) }
}

/** A store may return a Buffer or a Uint8Array, which assert distinguishes: compare their bytes. */
export function plain(outcome: Outcome): object {
  return {
    status: outcome.status,
    headers: outcome.headers.map(([name, value]) => [name, value]),
    body: outcome.body && hex(outcome.body),
    version: outcome.version,
  }
}

function hex(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('hex')
}

export function sameBytes(actual: Uint8Array | undefined, expected: Uint8Array): void {
  assert.ok(actual, 'expected bytes, found none')
  assert.ok(hex(actual) === hex(expected), `expected ${expected.length} equal bytes, got ${actual.length} other ones`)
}

export function assertNextFence(store: Store, before: number, after: number): void {
  if (store.traits.fence === 'dense') assert.equal(after, before + 1)
  else assert.ok(after > before, `expected the fence to rise above ${before}, got ${after}`)
}

/** Within a minute: what passes between two calls on a slow machine. */
export function assertAbout(actualMs: number, expectedMs: number): void {
  assert.ok(Math.abs(actualMs - expectedMs) <= minuteMs, `expected about ${expectedMs} ms, got ${actualMs}`)
}

export type RowIn =
  | 'absent'
  | 'in_progress'
  | 'in_progress past its lease (hold)'
  | 'in_progress past its lease (rerun)'
  | 'completed'
  | 'failed_retryable'
  | 'unknown'

/** A row in each state, and the claim that brought it there. `absent`: a claim that was never granted. */
export const rowIn: Record<RowIn, (harness: StoreHarness, store: Store, key: string) => Promise<Claim>> = {
  absent: async (_harness, _store, key) => ({ id: identity(key).id, fence: 1, claimId: newClaimId() }),
  in_progress: (_harness, store, key) => own(store, key),
  'in_progress past its lease (hold)': (harness, store, key) => dead(harness, store, key, 'hold'),
  'in_progress past its lease (rerun)': (harness, store, key) => dead(harness, store, key, 'rerun'),
  completed: (_harness, store, key) => ended(store, key, claim => store.complete(claim, answer(), retentionMs)),
  failed_retryable: (_harness, store, key) => ended(store, key, claim => store.fail(claim, retryNow)),
  unknown: (_harness, store, key) => ended(store, key, claim => store.fail(claim, notKnown)),
}

async function dead(harness: StoreHarness, store: Store, key: string, recovery: 'hold' | 'rerun'): Promise<Claim> {
  const claim = await own(store, key, { recovery })
  await harness.advance(leaseMs + minuteMs)
  return claim
}

async function ended(store: Store, key: string, end: (claim: Claim) => Promise<string>): Promise<Claim> {
  const claim = await own(store, key)
  assert.equal(await end(claim), 'written')
  return claim
}
