/** Every value of the application's is found, and replaced only while it is the same. */
import assert from 'node:assert/strict'
import type { Outcome, Store, StoredValue } from 'latchkey'
import { append, message, openFixture } from '../../outbox/fixture.ts'
import type { StoreCase, StoreHarness } from '../../store-harness.ts'
import { answer, bytes, identity, notKnown, own, recordOf, retentionMs } from '../fixture.ts'
import { inboxIn, parkedMessage } from '../inbox/fixture.ts'
import { openReconciling } from '../reconcile/fixture.ts'
import { finishEffect, ownPhased, work } from '../steps/fixture.ts'

const pagesMax = 1_000

async function all({ values }: Store, limit: number): Promise<readonly StoredValue[]> {
  assert.ok(values)
  const found: StoredValue[] = []
  let after: string | undefined
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await values.page({ limit, after })
    found.push(...page.values)
    if (page.next === undefined) return found
    after = page.next
  }
  throw new assert.AssertionError({ message: `the pages did not end after ${pagesMax}` })
}

function text(value: StoredValue): string {
  if (value.kind === 'text') return `${value.column} ${value.text}`
  if (value.kind === 'ref') return `ref ${value.source} ${value.ref}`
  if (value.kind === 'reference') return `reference ${value.index} ${value.sealed}`
  if (value.kind === 'parked') return `parked ${Buffer.from(value.payload)}`
  const body = value.kind === 'outcome' ? value.outcome.body : value.message.payload
  return `${value.kind} ${body?.byteLength} ${Buffer.from(body ?? [])
    .toString()
    .slice(0, 6)}`
}

async function completed(store: Store, key: string, outcome: Outcome, description?: string): Promise<string> {
  const claim = await own(store, key, { description })
  assert.equal(await store.complete(claim, outcome, retentionMs), 'written')
  return claim.id
}

function outcomeOf(found: readonly StoredValue[], id: string): Extract<StoredValue, { kind: 'outcome' }> {
  const value = found.find(each => each.kind === 'outcome' && each.id === id)
  assert.ok(value?.kind === 'outcome', `no outcome of ${id} among ${found.map(text).join(', ')}`)
  return value
}

async function withEvidence(_harness: StoreHarness, store: Store): Promise<readonly string[]> {
  if (store.reconciliation === undefined) return []
  const unknown = await own(store, 'unknown')
  await store.fail(unknown, notKnown)
  const verdict = { kind: 'happened', outcome: answer('proof') } as const
  const subject = { id: unknown.id, effect: undefined }
  const expected: string[] = []
  for (const ref of ['evt_1', 'evt_2 "/caf\u00e9']) {
    const finding = { source: 'webhook', ref, verdict, delivery: { signedAtMs: 1_000 } } as const
    await store.reconciliation.keep(subject, finding)
    // The name of the evidence, and of the message.
    expected.push('outcome 5 proof', `ref webhook ${ref}`, `ref webhook ${ref}`)
  }
  return expected
}

async function withSteps(_harness: StoreHarness, store: Store): Promise<readonly string[]> {
  const { steps } = store
  if (steps === undefined) return []
  const claim = await ownPhased(store, 'phased')
  assert.equal(await finishEffect({ steps }, claim, { position: 0, result: '"packed"' }), 'written')
  assert.equal(await finishEffect({ steps }, claim, { position: 1, name: 'other', result: '"sent"' }), 'written')
  return [`input ${work.input}`, 'step "packed"', 'step "sent"']
}

async function withMessage(harness: StoreHarness, store: Store): Promise<readonly string[]> {
  if (store.outbox === undefined) return []
  await append(await openFixture(harness), [message('hello')])
  return ['message 5 hello']
}

async function withParked(_harness: StoreHarness, store: Store): Promise<readonly string[]> {
  if (store.inbox === undefined) return []
  for (const name of ['one', 'two']) await store.inbox.park(parkedMessage(name, { payload: bytes(name) }))
  return ['parked one', 'parked two']
}

async function withReferences(_harness: StoreHarness, store: Store): Promise<readonly string[]> {
  if (store.references === undefined) return []
  const claim = await own(store, 'named')
  await store.references.add(claim, [
    { index: 'ch_1', sealed: undefined },
    { index: 'hash', sealed: 'sealed' },
  ])
  return ['reference ch_1 undefined', 'reference hash sealed']
}

/** Larger than a store puts into the row of its key. */
const large = 'l'.repeat(100_000)

export const valueCases: readonly StoreCase[] = [
  {
    name: 'pages through every value of the application once, whatever the size of a page',
    async run(harness) {
      const store = await harness.open()
      assert.ok(store.values)
      await completed(store, 'small', answer('small'), 'a small one')
      await completed(store, 'large', answer(large))
      const expected = ['description a small one', 'outcome 5 small', 'outcome 100000 llllll']
      for (const add of [withEvidence, withSteps, withMessage, withParked, withReferences])
        expected.push(...(await add(harness, store)))
      for (const limit of [1, 2, 1_000]) {
        assert.deepEqual((await all(store, limit)).map(text).toSorted(), expected.toSorted(), `pages of ${limit}`)
      }
    },
  },
  {
    name: 'replaces a value in its place, of every size, and nothing else of its row',
    async run(harness) {
      const store = await harness.open()
      const { values } = store
      assert.ok(values)
      for (const [key, was, becomes] of [
        ['small', 'small', 'other'],
        ['large', large, `${large}!`],
        ['grows', 'g'.repeat(990), 'g'.repeat(1_100)],
      ] as const) {
        const id = await completed(store, key, answer(was), 'described')
        const before = await recordOf(store, id)
        const value = outcomeOf(await all(store, 100), id)
        const outcome = { ...value.outcome, headers: [['x-other', 'yes']] as const, body: bytes(becomes) }
        assert.equal(await values.replace(value, { ...value, outcome }), 'replaced')
        const after = await recordOf(store, id)
        assert.equal(Buffer.from(after.outcome?.body ?? []).toString(), becomes)
        assert.deepEqual(after.outcome?.headers, [['x-other', 'yes']])
        assert.deepEqual([after.state, after.fence, after.description], [before.state, before.fence, 'described'])
        assert.equal(await values.replace(value, { ...value, outcome }), 'changed')
      }
    },
  },
  {
    name: 'replaces a description, and not one that another grant has written',
    async run(harness) {
      const store = await harness.open()
      const { values } = store
      assert.ok(values)
      await own(store, 'a', { description: 'first' })
      const value = (await all(store, 100)).find(each => each.kind === 'text')
      assert.ok(value?.kind === 'text')
      assert.equal(await values.replace(value, { ...value, text: 'second' }), 'replaced')
      assert.equal((await recordOf(store, identity('a').id)).description, 'second')
      assert.equal(await values.replace(value, { ...value, text: 'third' }), 'changed')
      assert.equal((await recordOf(store, identity('a').id)).description, 'second')
    },
  },
  {
    name: 'replaces the contents of a parked message, and not those that have changed',
    needs: ['inbox'],
    async run(harness) {
      const store = await harness.open()
      const { values } = store
      assert.ok(values)
      const inbox = inboxIn(store)
      const message = parkedMessage('sealed')
      await inbox.park(message)
      const value = (await all(store, 100)).find(each => each.kind === 'parked')
      assert.ok(value?.kind === 'parked')
      assert.equal(value.id, message.id)
      const after = { ...value, headers: { '': '' }, payload: bytes('other') }
      assert.equal(await values.replace(value, after), 'replaced')
      assert.equal(await values.replace(value, after), 'changed')
      const found = await inbox.inspect(message.id)
      assert.deepEqual(found.message?.headers, { '': '' })
      assert.equal(Buffer.from(found.message?.payload ?? []).toString(), 'other')
    },
  },
  {
    name: 'gives evidence and its message another name, under which both are recognised',
    needs: ['reconciliation'],
    async run(harness) {
      const store = await openReconciling(harness)
      const { values, reconciliation } = store
      assert.ok(values)
      const unknown = await own(store, 'unknown')
      await store.fail(unknown, notKnown)
      const subject = { id: unknown.id, effect: undefined }
      const finding = { source: 'webhook', ref: 'evt_1', verdict: { kind: 'never-happened' } } as const
      const kept = await reconciliation.keep(subject, { ...finding, delivery: { signedAtMs: 1_000 } })
      assert.equal(kept.kind, 'kept')
      const refs = (await all(store, 100)).filter(value => value.kind === 'ref')
      assert.equal(refs.length, 2)
      for (const value of refs) assert.equal(await values.replace(value, { ...value, ref: 'other' }), 'replaced')
      for (const value of refs) assert.equal(await values.replace(value, { ...value, ref: 'third' }), 'changed')
      const renamed = { ...finding, ref: 'other' }
      const again = await reconciliation.keep(subject, { ...renamed, delivery: { signedAtMs: 1_000 } })
      assert.deepEqual(again, { kind: 'replayed' })
      assert.deepEqual(await reconciliation.keep(subject, renamed), { ...kept, kind: 'duplicate' })
    },
  },
]
