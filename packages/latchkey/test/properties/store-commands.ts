/** What callers do to a store, in any order: fast-check picks it, the model says what must come of it. */
import assert from 'node:assert/strict'
import fc, { type AsyncCommand } from 'fast-check'
import type { StoreHarness } from '../../src/conformance/index.ts'
import type { Outcome } from '../../src/ports/outcome.ts'
import type { Claim, Store } from '../../src/ports/store.ts'
import * as expected from './store-model.ts'
import type { ModelClaim, StoreModel } from './store-model.ts'
import { idOf, keys, text } from './store-names.ts'

export interface Real {
  readonly harness: StoreHarness
  store: Store
}

export type StoreCommand = AsyncCommand<StoreModel, Real>

/**
 * Time moves in whole ticks and every span ends in the middle of one, so that a server whose clock runs on by itself, by
 * less than half a tick, never disagrees with the model about what has run out.
 */
const tickMs = 10 * 60_000
const halfTicks = (halves: number) => (halves * tickMs) / 2
const spans = fc.constantFrom(1, 3, 5, 9).map(halfTicks)
const key = fc.constantFrom(...keys)
const fingerprint = fc.constantFrom('v1 same', 'v1 other')
const recovery = fc.constantFrom('hold', 'rerun', 'rerun')
const act = { by: 'alex', reason: 'checked with the provider' }

/** Mostly the claim as it was granted; sometimes with what a confused or stale owner would send. */
const pick = fc.record({
  nth: fc.nat({ max: 30 }),
  spoil: fc.constantFrom('no', 'no', 'no', 'no', 'fence', 'claimId'),
})
type Pick = { readonly nth: number; readonly spoil: string }

function claimFrom(model: StoreModel, { nth, spoil }: Pick): ModelClaim {
  const claim = model.claims.at(-1 - (nth % model.claims.length))
  assert.ok(claim)
  if (spoil === 'fence') return { ...claim, fence: claim.fence + 1 }
  return spoil === 'claimId' ? { ...claim, claimId: 'nobody' } : claim
}

const real = (claim: ModelClaim): Claim => ({ id: idOf(claim.key), fence: claim.fence, claimId: idOf(claim.claimId) })
const answerOf = (body: string): Outcome => ({ status: 200, headers: [], body: text(body), version: 1 })

/** After every command the store and the model show the same rows, those that were not touched included. */
async function compare(model: StoreModel, store: Store): Promise<void> {
  const names = new Map(model.claims.map(claim => [idOf(claim.claimId), claim.claimId]))
  for (const name of keys) {
    const record = await store.read(idOf(name))
    const shown = expected.viewOf(record, claimId => names.get(claimId) ?? `unheard of: ${claimId}`)
    assert.deepEqual(shown, expected.view(model, name), `row ${name}`)
  }
}

interface Step<Input> {
  readonly name: string
  readonly input: fc.Arbitrary<Input>
  /** False: the command makes no sense now and is left out. */
  readonly when?: (model: StoreModel, input: Input) => boolean
  readonly run: (model: StoreModel, real: Real, input: Input) => Promise<void>
}

function step<Input>({ name, input, when, run }: Step<Input>): fc.Arbitrary<StoreCommand> {
  return input.map(value => ({
    check: model => when?.(model, value) ?? true,
    run: async (model, real) => {
      await run(model, real, value)
      await compare(model, real.store)
    },
    toString: () => `${name} ${JSON.stringify(value)}`,
  }))
}

const somebodyClaimed = (model: StoreModel) => model.claims.length > 0
function agrees(actual: string, foreseen: string): void {
  if (foreseen !== 'open') assert.equal(actual, foreseen)
}

const claimInput = fc.record({ key, fingerprint, recovery, leaseMs: spans, expiresInMs: spans })
type ClaimInput = { key: string; fingerprint: string; recovery: string; leaseMs: number; expiresInMs: number }

function askedFrom(model: StoreModel, input: ClaimInput) {
  const recovery = input.recovery === 'hold' ? ('hold' as const) : ('rerun' as const)
  return { ...input, recovery, claimId: expected.nextClaimId(model) }
}

function claimAs(store: Store, asked: ReturnType<typeof askedFrom>) {
  return store.claim({
    identity: { id: idOf(asked.key), scope: 'tenant', operation: 'pay' },
    claimId: idOf(asked.claimId),
    fingerprint: text(asked.fingerprint),
    recovery: asked.recovery,
    leaseMs: asked.leaseMs,
    expiresInMs: asked.expiresInMs,
    description: undefined,
  })
}

const claim = step({
  name: 'claim',
  input: claimInput,
  async run(model, { store }, input) {
    const asked = askedFrom(model, input)
    const result = await claimAs(store, asked)
    assert.equal(result.kind === 'won' ? result.from : 'seen', expected.claim(model, asked))
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
  ...[sweep, reap, settle, forget, advance, advance, restart],
]
