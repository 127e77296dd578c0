/** What callers do to a store, in any order: fast-check picks it, the model says what must come of it. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Outcome } from '../../src/ports/outcome.ts'
import type { Store } from '../../src/ports/store.ts'
import { act, agrees, claimFrom, halfTicks, key, pick, real, somebodyClaimed, spans, step } from './command.ts'
import { type StoreCommand, tickMs } from './command.ts'
import { viewOfJournal, viewOfModel } from './journal-model.ts'
import { phasedCommands } from './phased-commands.ts'
import * as expected from './store-model.ts'
import type { StoreModel } from './store-model.ts'
import { idOf, keys, text } from './store-names.ts'

const fingerprint = fc.constantFrom('v1 same', 'v1 other')
const recovery = fc.constantFrom('hold' as const, 'rerun' as const, 'resume' as const, 'resume' as const)
const answerOf = (body: string): Outcome => ({ status: 200, headers: [], body: text(body), version: 1 })

const claimInput = fc.record({ key, fingerprint, recovery, leaseMs: spans, expiresInMs: spans })
type ClaimInput = Omit<expected.Asked, 'claimId' | 'work'>

/** Each phased request brings an input of its own, so that it shows whose was kept. */
function askedFrom(model: StoreModel, input: ClaimInput): expected.Asked {
  const claimId = expected.nextClaimId(model)
  return { ...input, claimId, work: input.recovery === 'resume' ? `"input of ${claimId}"` : undefined }
}

function claimAs(store: Store, asked: expected.Asked) {
  return store.claim({
    identity: { id: idOf(asked.key), scope: 'tenant', operation: 'pay' },
    claimId: idOf(asked.claimId),
    fingerprint: text(asked.fingerprint),
    recovery: asked.recovery,
    leaseMs: asked.leaseMs,
    expiresInMs: asked.expiresInMs,
    description: undefined,
    ...(asked.work === undefined ? {} : { work: { version: 1, input: asked.work } }),
  })
}

const claim = step({
  name: 'claim',
  input: claimInput,
  async run(model, { store }, input) {
    const asked = askedFrom(model, input)
    const result = await claimAs(store, asked)
    assert.equal(result.kind === 'won' ? result.from : 'seen', expected.claim(model, asked))
    if (result.kind === 'seen') return
    const row = model.rows.get(asked.key)
    assert.deepEqual([result.attempt, result.crashes], [row?.attempts, row?.crashes])
    // Whether a request that is not phased is told of the journal of a row that was, the port leaves open.
    if (asked.recovery !== 'resume' || !store.steps) return
    assert.deepEqual(viewOfJournal(result.journal), viewOfModel(row?.journal, model.nowMs))
  },
})

const claimWithLostReply = step({
  name: 'claim, reply lost',
  input: fc.record({ claim: claimInput, release: fc.boolean() }),
  async run(model, { store }, input) {
    const asked = askedFrom(model, input.claim)
    await claimAs(store, asked)
    const won = expected.claim(model, asked) !== 'seen'
    const record = await store.read(idOf(asked.key))
    assert.equal(record?.claimId === idOf(asked.claimId), won, 'a claim is found again by its claimId')
    if (input.release) agrees(await store.release(idOf(asked.key), idOf(asked.claimId)), expected.release(model, asked))
  },
})

const heartbeat = step({
  name: 'heartbeat',
  input: fc.record({ pick, leaseMs: spans }),
  when: somebodyClaimed,
  async run(model, { store }, input) {
    const claim = claimFrom(model, input.pick)
    assert.equal(await store.heartbeat(real(claim), input.leaseMs), expected.heartbeat(model, claim, input.leaseMs))
  },
})

const complete = step({
  name: 'complete',
  input: fc.record({ pick, answer: fc.constantFrom('one', 'two'), retentionMs: spans, replyLost: fc.boolean() }),
  when: somebodyClaimed,
  async run(model, { store }, input) {
    const claim = claimFrom(model, input.pick)
    for (let sent = 0; sent <= Number(input.replyLost); sent += 1) {
      const result = await store.complete(real(claim), answerOf(input.answer), input.retentionMs)
      assert.equal(result, expected.complete(model, claim, input))
    }
  },
})

const fail = step({
  name: 'fail',
  input: fc.record({
    pick,
    to: fc.constantFrom('failed_retryable', 'unknown'),
    errorCode: fc.constantFrom('ECONNREFUSED', 'TimeoutError'),
    dueInMs: fc.constantFrom(0, 1, 3).map(halfTicks),
    replyLost: fc.boolean(),
  }),
  when: somebodyClaimed,
  async run(model, { store }, input) {
    const claim = claimFrom(model, input.pick)
    const failure = { to: input.to, errorCode: input.errorCode, dueInMs: input.dueInMs }
    for (let sent = 0; sent <= Number(input.replyLost); sent += 1) {
      agrees(await store.fail(real(claim), failure), expected.fail(model, claim, failure))
    }
  },
})

const release = step({
  name: 'release',
  input: pick,
  when: somebodyClaimed,
  async run(model, { store }, input) {
    const claim = claimFrom(model, input)
    agrees(await store.release(idOf(claim.key), idOf(claim.claimId)), expected.release(model, claim))
  },
})

const sweep = step({
  name: 'sweep',
  input: fc.record({ limit: fc.constantFrom(1, 2, 10), only: fc.option(key, { nil: undefined }) }),
  async run(model, { store }, { limit, only }) {
    const dead = expected.sweepable(model).filter(name => only === undefined || name === only)
    const swept = await store.sweep(only === undefined ? { limit } : { limit, id: idOf(only) })
    assert.equal(swept.length, Math.min(limit, dead.length))
    for (const row of swept) {
      const name = keys.find(each => idOf(each) === row.id) ?? 'unheard of'
      assert.ok(dead.includes(name), `swept ${name}`)
      assert.equal(row.to, expected.sweep(model, name))
    }
  },
})

const reap = step({
  name: 'reap',
  input: fc.constantFrom(1, 2, 10),
  async run(model, { store }, limit) {
    const reapable = expected.reapable(model)
    const count = await store.reap({ limit })
    assert.equal(count, Math.min(limit, reapable.length))
    const gone: string[] = []
    for (const name of reapable) if ((await store.read(idOf(name))) === undefined) gone.push(name)
    assert.equal(gone.length, count)
    for (const name of gone) model.rows.delete(name)
  },
})

const settle = step({
  name: 'settle',
  input: fc.record({ key, answer: fc.constantFrom(undefined, 'by hand'), retentionMs: spans }),
  async run(model, { store }, { key, answer, retentionMs }) {
    const verdict = { kind: 'happened', outcome: answerOf(answer ?? '') } as const
    const given = answer === undefined ? ({ kind: 'never-happened' } as const) : verdict
    const result = await store.settle(idOf(key), given, act, retentionMs)
    const told = result.kind === 'wrong-state' ? result.state : result.kind
    assert.equal(told, expected.settle(model, key, { answer, retentionMs }))
  },
})

const forget = step({
  name: 'forget',
  input: key,
  // The port leaves open whether an expired row, which counts as absent, can still be forgotten.
  when: (model, key) => !expected.reapable(model).includes(key),
  async run(model, { store }, key) {
    const result = await store.forget(idOf(key), act)
    assert.equal(result.kind === 'wrong-state' ? result.state : result.kind, expected.forget(model, key))
  },
})

const advance = step({
  name: 'advance',
  input: fc.constantFrom(1, 1, 2, 3, 5),
  async run(model, { harness }, ticks) {
    model.nowMs += ticks * tickMs
    await harness.advance(ticks * tickMs)
  },
})

const restart = step({
  name: 'restart',
  input: fc.constant(null),
  async run(_model, real) {
    real.store = await real.harness.open()
  },
})

export const storeCommands: readonly fc.Arbitrary<StoreCommand>[] = [
  ...[claim, claim, claim, claimWithLostReply, heartbeat, complete, complete, fail, fail, release],
  ...phasedCommands,
  ...[sweep, reap, settle, forget, advance, advance, restart],
]
