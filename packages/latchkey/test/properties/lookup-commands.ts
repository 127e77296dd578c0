/** Who looks for what became of unknown rows. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { advance, halfTicks, inTurn, spans, step, type StoreCommand } from './command.ts'
import type { ModelLookup } from './evidence-model.ts'
import * as expected from './settle-model.ts'
import type { StoreModel } from './store-model.ts'
import { idOf, keys } from './store-names.ts'
import { present } from '../present.ts'

/** One for all, as the reconciler of an operation has: the port leaves open what another one would find. */
const firstInMs = halfTicks(1)

const lookups = step({
  name: 'lookups',
  by: ['reconciler'],
  input: fc.record({ leaseMs: spans, limit: fc.constantFrom(1, 10) }),
  async run(model, { store }, { leaseMs, limit }) {
    const { reconciliation } = store
    if (reconciliation === undefined) return
    const due = expected.lookupsDue(model, firstInMs)
    const granted = await reconciliation.lookups({ operation: 'pay', firstInMs, leaseMs, limit })
    assert.equal(granted.length, Math.min(limit, due.length))
    for (const { id, fence, look, tries, attempts, effect } of granted) {
      const key = keys.find(each => idOf(each) === id) ?? 'unheard of'
      const row = model.rows.get(key)
      assert.ok(row?.doubt && due.includes(key), `${key} is looked up`)
      assert.deepEqual([fence, tries, attempts], [row.fence, row.doubt.tries + 1, row.attempts])
      assert.ok(look > row.doubt.look, `look ${look} after ${row.doubt.look}`)
      if (!expected.isMixed(row)) {
        const doubt = expected.effectInDoubt(row)
        assert.deepEqual(effect, doubt && { ...doubt, name: 'charge' })
      }
      Object.assign(row.doubt, { look, tries, lookUpAt: model.nowMs + leaseMs })
      model.evidence.lookups.push({ key, fence, look })
    }
  },
})

/** A look-up that ended is not ended again: the port leaves open what the repetition gets. */
function takeLookup({ evidence }: StoreModel, nth: number): ModelLookup {
  const lookup = evidence.lookups[evidence.lookups.length - 1 - (nth % evidence.lookups.length)]
  assert.ok(lookup)
  // A forgotten key begins again at fence 1 and look 1, so a look-up of its first generation can be equal to one of its second.
  const isSame = (each: ModelLookup) =>
    each.key === lookup.key && each.fence === lookup.fence && each.look === lookup.look
  evidence.lookups = evidence.lookups.filter(each => !isSame(each))
  return lookup
}

const answer = step({
  name: 'answer of a look-up',
  by: ['reconciler'],
  input: fc.record({
    nth: fc.nat({ max: 5 }),
    end: fc.constantFrom('postpone', 'postpone', 'give up'),
    inMs: fc.constantFrom(0, 1, 3).map(halfTicks),
    spoil: fc.constantFrom(0, 0, 0, 1),
  }),
  when: ({ evidence }) => evidence.lookups.length > 0,
  async run(model, { store }, { nth, end, inMs, spoil }) {
    const lookup = takeLookup(model, nth)
    const row = spoil === 0 ? expected.lookedAt(model, lookup) : undefined
    const claim = { id: idOf(lookup.key), fence: lookup.fence, look: lookup.look + 100 * spoil }
    const reconciliation = present(store.reconciliation)
    const written =
      end === 'postpone' ? reconciliation.postpone(claim, inMs) : reconciliation.giveUp(claim, 'unresolved')
    assert.equal(await written, row ? 'written' : 'claim-lost')
    if (!row?.doubt) return
    if (end === 'postpone') row.doubt.lookUpAt = model.nowMs + inMs
    else Object.assign(row, { parked: true, errorCode: 'unresolved' })
  },
})

const unknowns = step({
  name: 'unknowns',
  by: [],
  input: fc.constant(null),
  async run(model, { store }) {
    const rows = [...model.rows.values()].filter(row => row.state === 'unknown')
    const parked = rows.filter(row => row.parked).length
    const { reconciliation } = store
    if (reconciliation === undefined) return
    const found = await reconciliation.unknowns()
    assert.deepEqual(
      found.map(each => [each.operation, each.count, each.parked]),
      rows.length === 0 ? [] : [['pay', rows.length, parked]],
    )
  },
})

const looked = inTurn(advance, lookups, answer)

export const lookupCommands: readonly fc.Arbitrary<StoreCommand>[] = [lookups, looked, looked, answer, unknowns]
