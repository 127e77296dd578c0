/** What a caller hears when the store is away is true: "not executed" only of what did not run and cannot run later. */
import { engine } from '../../src/engine/internal.ts'
import type { Resumer } from '../../src/engine/operation.ts'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Answer } from '../../src/engine/answer.ts'
import { createLatchkey, type Latchkey } from '../../src/engine/latchkey.ts'
import { json } from '../../src/engine/steps/json.ts'
import { renderRefusal } from '../../src/http/exchange/answers/refusal.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'
import type { Store } from '../../src/ports/store.ts'
import { type BreakableStore, breakableStore } from './breakable-store.ts'
import { delayed, eventually, executeRequest, lastAnswer, losesReply, operationName, rejects, told } from './fixture.ts'

let breakable: BreakableStore
let real: Store
let latchkey: Latchkey<unknown, unknown>
let ran: string[]

beforeEach(async () => {
  breakable = await breakableStore()
  // Only `read`, `claim` and what workers call, none of which takes a transaction.
  real = breakable.real as Store
  ran = []
  latchkey = createLatchkey({ store: breakable.store as Store, scope: () => 'acme', storeTimeoutMs: 200 })
})
afterEach(async () => {
  await latchkey.close({ timeoutMs: 1_000 })
  await breakable.close()
})

const phased = () =>
  latchkey.phased(operationName, { version: 1, leaseMs: 1_000 }, async (x, input: unknown) => {
    await x.phase('record', () => void ran.push('record'))
    await x.effect('charge', { timeoutMs: 1_000 }, async () => void ran.push('charge'))
    return json(201, input)
  })
const deferred = () =>
  latchkey.deferred(operationName, { deadlineMs: 60_000 }, async (_, input: unknown) => {
    ran.push('deferred')
    return json(201, input)
  })
const guarded = () => latchkey.guarded(operationName, { onFailure: 'hold' })
const handler = async () => {
  ran.push('guarded')
  return { kind: 'threw', error: new Error('never called') } as const
}

function said(answer: Answer, profile: 'ietf' | 'stripe' = 'ietf'): string {
  if (answer.kind !== 'refused') throw new Error(`not refused: ${told(answer)}`)
  const { status, body } = renderRefusal(answer.refusal, {
    host: { http: { profile }, telemetry: silentTelemetry },
    context: undefined,
    accept: false,
  })
  return `${status} ${new TextDecoder().decode(body)}`
}

async function work(store: Store, resume: Resumer['resume']): Promise<string[]> {
  const ends: string[] = []
  for (const row of await store.resumable({ limit: 10 })) ends.push(await resume(row))
  return ends
}

describe.each(['ietf', 'stripe'] as const)('in the %s profile', profile => {
  it('a phased claim that committed without a reply: may have been accepted, and a worker executes it', async () => {
    const operation = phased()
    breakable.faults = { claim: losesReply, read: rejects }
    const answer = await operation[engine].execute(executeRequest('k'), { input: () => ({ amount: 1 }) })
    expect(said(answer, profile)).toMatch(/^503 .*may have been accepted.*same key.*"maybe_accepted":true/)
    expect(said(answer, profile)).not.toContain('not executed')
    breakable.faults = {}
    await eventually(async () => (await work(real, operation[engine].resume)).includes('completed'))
    expect(ran).toEqual(['record', 'charge'])
  })

  it('a deferred one that is written after the 503: the same', async () => {
    const operation = deferred()
    breakable.faults = { enqueue: delayed(400) }
    const answer = await operation[engine].execute(executeRequest('k'), { input: () => ({ amount: 1 }) })
    expect(said(answer, profile)).toMatch(/^503 .*may have been accepted.*same key.*"maybe_accepted":true/)
    expect(said(answer, profile)).not.toContain('not executed')
    breakable.faults = {}
    await eventually(async () => (await work(real, operation[engine].resume)).includes('completed'))
    expect(ran).toEqual(['deferred'])
  })

  it('a guarded claim in doubt: not executed, and it never is', async () => {
    breakable.faults = { claim: losesReply, read: rejects }
    const answer = await guarded()[engine].execute(executeRequest('k'), handler)
    expect(said(answer, profile)).toMatch(/^503 .*The request was not executed/)
    expect(said(answer, profile)).not.toContain('maybe_accepted')
    breakable.faults = {}
    const { id } = executeRequest('k').identity
    const state = async () => (await real.read(id))?.state
    expect(await lastAnswer(state, 'failed_retryable')).toBe('failed_retryable')
    expect(ran).toEqual([])
  })
})

it('says not executed of phased and deferred work that was never sent, because the circuit is open', async () => {
  breakable.faults = { claim: rejects, read: rejects, enqueue: rejects }
  const operation = phased()
  for (let tries = 0; tries < 6; tries++)
    await operation[engine].execute(executeRequest(`k${tries}`), { input: () => ({}) })
  const answer = await operation[engine].execute(executeRequest('k'), { input: () => ({}) })
  expect(said(answer)).toContain('The request was not executed')
  breakable.faults = {}
  expect(await real.read(executeRequest('k').identity.id)).toBeUndefined()
})

it.each([
  ['its journal cannot be read', { readJournal: rejects, claim: losesReply }, []],
  ['a phase cannot begin', { enterPhase: rejects }, []],
  ['an intent cannot be written', { openIntent: rejects }, ['record']],
])('says of phased work that was granted and %s that it was accepted', async (_, broken, before) => {
  const operation = phased()
  breakable.faults = broken
  const answer = await operation[engine].execute(executeRequest('k'), { input: () => ({ amount: 1 }) })
  expect(said(answer)).toMatch(/^503 .*may have been accepted/)
  expect(ran).toEqual(before)
  breakable.faults = {}
  await eventually(async () => (await work(real, operation[engine].resume)).includes('completed'))
  expect(ran).toEqual(['record', 'charge'])
})

it('says it to the caller of a plain function, too', async () => {
  breakable.faults = { claim: losesReply, read: rejects, enqueue: rejects }
  const given = { scope: 'acme', key: 'k', input: {} }
  const refusal = { code: 'store-unavailable', maybeAccepted: true, message: expect.stringContaining('may run later') }
  await expect(phased().run(given)).rejects.toMatchObject(refusal)
})

it('says to the caller of guarded work that nothing was executed or stored', async () => {
  breakable.faults = { claim: rejects, read: rejects }
  const refusal = {
    code: 'store-unavailable',
    maybeAccepted: false,
    message: expect.stringContaining('nothing was executed'),
  }
  await expect(guarded().run({ scope: 'acme', key: 'k', input: {} }, () => 1)).rejects.toMatchObject(refusal)
})

it('does not deny an earlier request whose dead lease cannot be swept', async () => {
  const { identity, fingerprint } = executeRequest('k')
  const claimId = '00000000-0000-4000-8000-000000000001'
  await real.claim({
    ...{ identity, fingerprint, claimId, recovery: 'hold', leaseMs: 1, expiresInMs: 90_000 },
    description: undefined,
  })
  await eventually(async () => ((await real.read(identity.id))?.leaseLeftMs ?? 1) <= 0)
  breakable.faults = { sweep: rejects }
  expect(said(await guarded()[engine].execute(executeRequest('k'), handler))).not.toContain('not executed')
})
