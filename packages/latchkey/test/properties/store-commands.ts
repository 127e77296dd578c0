/** What callers do to a store, in any order: fast-check picks it, the model predicts what must come of it. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Failure, Store } from '../../src/ports/store.ts'
import { act, advance, agrees, answerOf, claimFrom, halfTicks, inTurn, key, latest, pick, real } from './command.ts'
import { hasClaims, spans, step } from './command.ts'
import type { StoreCommand } from './command.ts'
import { evidenceCommands, verdictOf } from './evidence-commands.ts'
import { viewOfJournal, viewOfModel } from './journal-model.ts'
import { assertLegal, standings } from './legal-transitions.ts'
import { lookupCommands } from './lookup-commands.ts'
import { intentOfLatest, phasedCommands } from './phased-commands.ts'
import { isMixed, isOnTheEdge, settle as settleModel } from './settle-model.ts'
import * as expected from './store-model.ts'
import type { StoreModel } from './store-model.ts'
import { idOf, keys, text } from './store-names.ts'

const fingerprint = fc.constantFrom('v1 same', 'v1 other')
const recovery = fc.constantFrom('hold' as const, 'rerun' as const, 'resume' as const, 'resume' as const)

const tombstoneMs = fc.option(spans, { nil: undefined })
const claimInput = fc.record({ key, fingerprint, recovery, leaseMs: spans, expiresInMs: spans, tombstoneMs })
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
    ...(asked.tombstoneMs === undefined ? {} : { tombstoneMs: asked.tombstoneMs }),
    ...(asked.work === undefined ? {} : { work: { version: 1, input: asked.work } }),
  })
}

const claimAsking = (input: typeof claimInput) =>
  step({
    name: 'claim',
    by: ['request', 'resumer'],
    input,
    async run(model, { store }, input) {
      const asked = askedFrom(model, input)
      const result = await claimAs(store, asked)
      assert.equal(result.kind === 'won' ? result.from : 'seen', expected.claim(model, asked))
      if (result.kind === 'seen') return
      const row = model.rows.get(asked.key)
      assert.deepEqual([result.attempt, result.crashes], [row?.attempts, row?.crashes])
      // Whether a request that is not phased gets the journal of a row that was, the port leaves open.
      if (asked.recovery !== 'resume' || !store.steps) return
      assert.deepEqual(viewOfJournal(result.journal), viewOfModel(row?.journal, model.nowMs))
    },
  })

const claim = claimAsking(claimInput)

const claimWithLostReply = step({
  name: 'claim, reply lost',
  input: fc.record({ claim: claimInput, release: fc.boolean() }),
  async run(model, { store }, input) {
    const asked = askedFrom(model, input.claim)
    await claimAs(store, asked)
    const before = standings(model)
    const won = expected.claim(model, asked) !== 'seen'
    assertLegal(before, model, ['request'])
    const record = await store.read(idOf(asked.key))
    assert.equal(record?.claimId === idOf(asked.claimId), won, 'a claim is found again by its claimId')
    if (!input.release) return
    const granted = standings(model)
    agrees(await store.release(idOf(asked.key), idOf(asked.claimId)), expected.release(model, asked))
    assertLegal(granted, model, ['owner'])
  },
})

const heartbeat = step({
  name: 'heartbeat',
  by: ['owner'],
  input: fc.record({ pick, leaseMs: spans }),
  when: hasClaims,
  async run(model, { store }, input) {
    const claim = claimFrom(model, input.pick)
    assert.equal(await store.heartbeat(real(claim), input.leaseMs), expected.heartbeat(model, claim, input.leaseMs))
  },
})

const completeBy = (owner: typeof pick) =>
  step({
    name: 'complete',
    by: ['owner', 'late owner'],
    input: fc.record({
      pick: owner,
      answer: fc.constantFrom('one', 'two'),
      retentionMs: spans,
      replyLost: fc.boolean(),
    }),
    when: hasClaims,
    async run(model, { store }, input) {
      const claim = claimFrom(model, input.pick)
      for (let sent = 0; sent <= Number(input.replyLost); sent += 1) {
        const result = await store.complete(real(claim), answerOf(input.answer), input.retentionMs)
        agrees(result, expected.complete(model, claim, input))
      }
    },
  })

const failBy = (owner: typeof pick, to: fc.Arbitrary<Failure['to']>) =>
  step({
    name: 'fail',
    by: ['owner', 'late owner'],
    input: fc.record({
      pick: owner,
      to,
      errorCode: fc.constantFrom('ECONNREFUSED', 'TimeoutError'),
      dueInMs: fc.constantFrom(0, 1, 3).map(halfTicks),
      replyLost: fc.boolean(),
    }),
    when: hasClaims,
    async run(model, { store }, input) {
      const claim = claimFrom(model, input.pick)
      const failure = { to: input.to, errorCode: input.errorCode, dueInMs: input.dueInMs }
      for (let sent = 0; sent <= Number(input.replyLost); sent += 1) {
        agrees(await store.fail(real(claim), failure), expected.fail(model, claim, failure))
      }
    },
  })

const complete = completeBy(pick)
const fail = failBy(pick, fc.constantFrom('failed_retryable', 'unknown'))

const release = step({
  name: 'release',
  by: ['owner'],
  input: pick,
  when: hasClaims,
  async run(model, { store }, input) {
    const claim = claimFrom(model, input)
    agrees(await store.release(idOf(claim.key), idOf(claim.claimId)), expected.release(model, claim))
  },
})

const releaseMany = step({
  name: 'release many',
  by: ['owner', 'late owner'],
  input: fc.array(pick, { minLength: 1, maxLength: 3 }),
  when: hasClaims,
  async run(model, { store }, picks) {
    const asked = [...new Map(picks.map(one => claimFrom(model, one)).map(one => [one.claimId, one])).values()]
    const claims = asked.filter(
      claim => !model.evidence.pieces.some(piece => piece.key === claim.key && isOnTheEdge(model, piece)),
    )
    const sent = claims.map(claim => ({ id: idOf(claim.key), claimId: idOf(claim.claimId) }))
    const over = expected.releaseMany(model, claims).map(idOf)
    assert.deepEqual([...(await store.releaseMany(sent))].sort(), over.sort())
  },
})

const sweep = step({
  name: 'sweep',
  by: ['sweeper'],
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
  by: ['reaper'],
  input: fc.constantFrom(1, 2, 10),
  async run(model, { store }, wanted) {
    const [reapable, strippable] = [expected.reapable(model), expected.strippable(model)]
    // Which of several gone rows was stripped cannot be seen: all of them are, or none.
    const limit = strippable.length > 0 ? 10 : wanted
    const count = await store.reap({ limit })
    assert.equal(count, Math.min(limit, reapable.length + strippable.length))
    const deleted: string[] = []
    for (const name of reapable) if ((await store.read(idOf(name))) === undefined) deleted.push(name)
    assert.equal(deleted.length, count - strippable.length)
    for (const name of deleted) expected.reaped(model, name)
    for (const name of strippable) expected.strip(model, name)
  },
})

const settle = step({
  name: 'settle',
  by: ['operator'],
  input: fc.record({
    key,
    verdict: fc.constantFrom('happened', 'declined', 'never-happened', 'never-happened'),
    gives: fc.constantFrom('outcome', 'outcome', 'result'),
    retentionMs: spans,
  }),
  when: (model, { key }) => !isMixed(model.rows.get(key)),
  async run(model, { store }, { key, verdict, gives, retentionMs }) {
    const found = { verdict, gives: verdict === 'never-happened' ? undefined : gives, value: '"by hand"' }
    const result = await store.settle(idOf(key), verdictOf(found), act, retentionMs)
    const kind = result.kind === 'wrong-state' ? result.state : result.kind
    assert.equal(kind, settleModel(model, key, { found, retentionMs }))
  },
})

const enqueue = step({
  name: 'enqueue',
  by: ['request'],
  input: fc.record({
    ...{ key, fingerprint, expiresInMs: spans, tombstoneMs },
    deadlineInMs: fc.option(spans, { nil: undefined }),
  }),
  async run(model, { store }, input) {
    if (store.steps === undefined) return
    const claimId = expected.nextClaimId(model)
    const asked = { ...input, claimId, work: `"input of ${claimId}"` }
    const { deadlineInMs } = input
    const result = await store.enqueue({
      identity: { id: idOf(asked.key), scope: 'tenant', operation: 'pay' },
      claimId: idOf(claimId),
      fingerprint: text(asked.fingerprint),
      expiresInMs: asked.expiresInMs,
      description: undefined,
      ...(asked.tombstoneMs === undefined ? {} : { tombstoneMs: asked.tombstoneMs }),
      work: { version: 1, input: asked.work, ...(deadlineInMs === undefined ? {} : { deadlineInMs }) },
    })
    assert.equal(result.kind, expected.enqueue(model, asked))
  },
})

const forget = step({
  name: 'forget',
  by: ['operator'],
  input: key,
  // The port leaves open whether an expired row, which counts as absent, can still be forgotten.
  when: (model, key) => !expected.reapable(model).includes(key),
  async run(model, { store }, key) {
    const result = await store.forget(idOf(key), act)
    assert.equal(result.kind === 'wrong-state' ? result.state : result.kind, expected.forget(model, key))
  },
})

const restart = step({
  name: 'restart',
  by: [],
  input: fc.constant(null),
  async run(_model, real) {
    real.store = await real.harness.open()
  },
})

const longInput = fc.record({
  ...{ key, fingerprint: fc.constant('v1 same'), recovery, tombstoneMs },
  ...{ leaseMs: fc.constant(halfTicks(9)), expiresInMs: fc.constant(halfTicks(9)) },
})
const shortInput = fc.record({
  ...{ key, fingerprint: fc.constant('v1 same'), recovery, leaseMs: spans },
  ...{ expiresInMs: fc.constant(halfTicks(1)), tombstoneMs: spans },
})
const unknownToOwner = failBy(latest, fc.constant('unknown'))
const becomesUnknown = inTurn(claimAsking(longInput), intentOfLatest, unknownToOwner)
const guardedUnknown = inTurn(claimAsking(longInput), unknownToOwner)
const isGone = inTurn(claimAsking(shortInput), completeBy(latest), advance, reap)

export const storeCommands: readonly fc.Arbitrary<StoreCommand>[] = [
  ...[claim, claim, claim, claimWithLostReply, heartbeat, complete, complete, fail, fail, release, releaseMany],
  ...[becomesUnknown, becomesUnknown, becomesUnknown, guardedUnknown, isGone],
  ...phasedCommands,
  ...evidenceCommands,
  ...lookupCommands,
  ...[enqueue, sweep, reap, settle, forget, advance, advance, restart],
]
