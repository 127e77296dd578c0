/** What an owner may write: every write, in every state, with the right and the wrong fence and claimId. */
import assert from 'node:assert/strict'
import type { Claim, KeyRecord, State, Store } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import {
  answer,
  leaseMs,
  newClaimId,
  notKnown,
  own,
  plain,
  recordOf,
  retentionMs,
  retryNow,
  rowIn,
} from '../fixture.ts'
import { assertAbout, expiresInMs, hourMs, request, still, won, type RowIn } from '../fixture.ts'

const late = answer('from the late owner', { status: 202 })

const writes = {
  heartbeat: (store, claim) => store.heartbeat(claim, leaseMs),
  complete: (store, claim) => store.complete(claim, late, retentionMs),
  'fail to failed_retryable': (store, claim) => store.fail(claim, retryNow),
  'fail to unknown': (store, claim) => store.fail(claim, notKnown),
  release: (store, claim) => store.release(claim.id, claim.claimId),
  'release many': async (store, claim) =>
    (await store.releaseMany([{ id: claim.id, claimId: claim.claimId }])).length > 0 ? 'released' : 'not-yours',
} as const satisfies Record<string, (store: Store, claim: Claim) => Promise<string>>

type Write = keyof typeof writes

/** The state afterwards; `refused`: the write is refused and the row does not change; `unchanged`: the row already is as requested. */
type Expected = State | 'refused' | 'unchanged'

const running: Record<Write, Expected> = {
  heartbeat: 'in_progress',
  complete: 'completed',
  'fail to failed_retryable': 'failed_retryable',
  'fail to unknown': 'unknown',
  release: 'failed_retryable',
  'release many': 'failed_retryable',
}

const table: Record<RowIn, Record<Write, Expected>> = {
  absent: {
    heartbeat: 'refused',
    complete: 'refused',
    'fail to failed_retryable': 'refused',
    'fail to unknown': 'refused',
    release: 'refused',
    'release many': 'refused',
  },
  in_progress: running,
  'in_progress past its lease (hold)': running,
  'in_progress past its lease (rerun)': running,
  completed: {
    heartbeat: 'refused',
    complete: 'unchanged',
    'fail to failed_retryable': 'refused',
    'fail to unknown': 'refused',
    release: 'refused',
    'release many': 'refused',
  },
  failed_retryable: {
    heartbeat: 'refused',
    complete: 'refused',
    'fail to failed_retryable': 'unchanged',
    'fail to unknown': 'refused',
    release: 'unchanged',
    'release many': 'unchanged',
  },
  unknown: {
    heartbeat: 'refused',
    complete: 'completed',
    'fail to failed_retryable': 'failed_retryable',
    'fail to unknown': 'unchanged',
    release: 'refused',
    'release many': 'failed_retryable',
  },
}

const yes = ['written', 'released']
const no = ['claim-lost', 'not-yours']

async function assertWrite(store: Store, claim: Claim, write: Write, expected: Expected): Promise<void> {
  const before = await store.read(claim.id)
  const result = await writes[write](store, claim)
  const after = await store.read(claim.id)
  if (expected === 'refused' || expected === 'unchanged') {
    if (expected === 'refused') assert.ok(no.includes(result), `expected a refusal, got ${result}`)
    // Only `complete` specifies the result of a repetition.
    if (expected === 'unchanged' && write === 'complete') assert.equal(result, 'written')
    assert.deepEqual(after && still(after), before && still(before))
    return
  }
  assert.ok(yes.includes(result), `expected the write to happen, got ${result}`)
  assert.ok(after)
  assertWritten(after, claim, expected)
}

function assertWritten(after: KeyRecord, claim: Claim, state: State): void {
  assert.deepEqual([after.state, after.fence, after.claimId], [state, claim.fence, claim.claimId])
  if (state === 'in_progress') assertAbout(after.leaseLeftMs, leaseMs)
  else assert.ok(after.leaseLeftMs <= 0, `only in_progress has a lease, found ${after.leaseLeftMs} ms`)
  if (state === 'completed') assert.deepEqual(after.outcome && plain(after.outcome), plain(late))
  else assert.equal(after.outcome, undefined)
  assert.equal(after.completedAtMs !== undefined, state === 'completed')
  if (state === 'failed_retryable') assert.ok(after.dueInMs <= 0)
}

// `as`: Object.keys widens the names of our own tables to string.
const stateNames = Object.keys(table) as RowIn[]
const writeNames = Object.keys(writes) as Write[]

const rightful: readonly StoreCase[] = stateNames.map(state => ({
  name: `obeys the owner of a row that is ${state} exactly as the transition table says`,
  async run(harness) {
    const store = await harness.open()
    for (const write of writeNames) {
      const claim = await rowIn[state](harness, store, `${state} ${write}`)
      await assertWrite(store, claim, write, table[state][write])
    }
  },
}))

const wrongful: readonly StoreCase[] = stateNames.flatMap(state => [
  {
    name: `refuses every write with the wrong fence to a row that is ${state}`,
    async run(harness) {
      const store = await harness.open()
      // The caller that releases does not know the fence.
      for (const write of writeNames.filter(name => !name.startsWith('release'))) {
        const claim = await rowIn[state](harness, store, `${state} ${write}`)
        await assertWrite(store, { ...claim, fence: claim.fence + 1 }, write, 'refused')
        await assertWrite(store, { ...claim, fence: claim.fence - 1 }, write, 'refused')
      }
    },
  },
  {
    name: `refuses every write with the wrong claimId to a row that is ${state}`,
    async run(harness) {
      const store = await harness.open()
      for (const write of writeNames) {
        const claim = await rowIn[state](harness, store, `${state} ${write}`)
        await assertWrite(store, { ...claim, claimId: newClaimId() }, write, 'refused')
      }
    },
  },
])

export const ownerCases: readonly StoreCase[] = [
  ...rightful,
  ...wrongful,
  {
    name: 'refuses every write of an owner that was replaced, and lets the new owner finish',
    async run(harness) {
      const store = await harness.open()
      for (const write of writeNames) {
        const stale = await rowIn['in_progress past its lease (rerun)'](harness, store, write)
        const current = await own(store, write)
        await assertWrite(store, stale, write, 'refused')
        assert.equal(await store.complete(current, answer('new'), retentionMs), 'written')
        await assertWrite(store, stale, write, 'refused')
      }
    },
  },
  {
    name: 'refuses every write of an owner whose row expired and was granted again',
    async run(harness) {
      const store = await harness.open()
      for (const write of writeNames) {
        const stale = await rowIn.completed(harness, store, write)
        await harness.advance(expiresInMs + hourMs)
        await own(store, write)
        await assertWrite(store, stale, write, 'refused')
      }
    },
  },
  {
    name: 'answers a repeated complete with written and keeps the first answer',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      assert.equal(await store.complete(claim, answer('first'), retentionMs), 'written')
      const first = await recordOf(store, claim.id)
      const second = await harness.open()
      assert.equal(await second.complete(claim, answer('second'), 90 * hourMs), 'written')
      assert.deepEqual(still(await recordOf(store, claim.id)), still(first))
    },
  },
  {
    name: 'completes once when an owner sends its answer many times at once',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a')
      const sent = Array.from({ length: 10 }, () => store.complete(claim, answer('once'), retentionMs))
      assert.deepEqual(new Set(await Promise.all(sent)), new Set(['written']))
      const { evidence } = await store.inspect(claim.id)
      assert.deepEqual(evidence, [])
    },
  },
  {
    name: 'keeps the error code and the state of a failure, and when it is due',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { description: 'order 7' })
      assert.equal(await store.fail(claim, { ...retryNow, errorCode: 'ENOTFOUND', dueInMs: hourMs }), 'written')
      const record = await recordOf(store, claim.id)
      assert.deepEqual(
        [record.state, record.lastErrorCode, record.description],
        ['failed_retryable', 'ENOTFOUND', 'order 7'],
      )
      assertAbout(record.dueInMs, hourMs)
      const held = await own(store, 'b')
      await store.fail(held, { ...notKnown, errorCode: 'UND_ERR_SOCKET' })
      const unknown = await recordOf(store, held.id)
      assert.deepEqual([unknown.state, unknown.lastErrorCode, unknown.attempts], ['unknown', 'UND_ERR_SOCKET', 1])
    },
  },
  {
    name: 'never grants a row its owner could not account for',
    async run(harness) {
      const store = await harness.open()
      const claim = await rowIn.unknown(harness, store, 'a')
      await harness.advance(40 * expiresInMs)
      assert.equal((await store.claim(request('a', { recovery: 'rerun' }))).kind, 'seen')
      assert.equal((await recordOf(store, claim.id)).expired, false)
    },
  },
  {
    name: 'lets either the late owner finish or the next one take over, never both',
    async run(harness) {
      const store = await harness.open()
      const second = await harness.open()
      for (let round = 0; round < 8; round += 1) {
        const old = await rowIn['in_progress past its lease (rerun)'](harness, store, `round ${round}`)
        const finish = () => store.complete(old, answer('old'), retentionMs)
        const takeOver = () => second.claim(request(`round ${round}`))
        const pair = round % 2 === 0 ? ([finish(), takeOver()] as const) : ([takeOver(), finish()] as const)
        const results = await Promise.all(pair)
        const finished = results.includes('written')
        const took = results.some(result => typeof result === 'object' && result.kind === 'won')
        assert.notEqual(finished, took, `finished: ${finished}, taken over: ${took}`)
        assert.equal((await recordOf(store, old.id)).state, finished ? 'completed' : 'in_progress')
      }
    },
  },
  {
    name: 'reopens a failed row for its owner only through a new claim',
    async run(harness) {
      const store = await harness.open()
      const first = await rowIn.failed_retryable(harness, store, 'a')
      const second = won(await store.claim(request('a'))).claim
      assert.equal(await store.complete(first, answer('first'), retentionMs), 'claim-lost')
      assert.equal(await store.fail(first, notKnown), 'claim-lost')
      assert.equal(await store.complete(second, answer('second'), retentionMs), 'written')
      const { outcome } = await recordOf(store, first.id)
      assert.deepEqual(outcome && plain(outcome), plain(answer('second')))
    },
  },
]
