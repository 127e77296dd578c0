/** Steps of phased work, and the mark that stops it. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { act, claimFrom, key, latest, pick, real, hasClaims, spans, step, type StoreCommand } from './command.ts'
import { openEffect, openIntent, recordResult } from './journal-model.ts'
import * as expected from './store-model.ts'
import type { ModelClaim, StoreModel } from './store-model.ts'
import { downstreamKeyOf, idOf, keys } from './store-names.ts'

const position = fc.constantFrom(0, 1)

/** The row of a claim that may write steps now; only rows of phased work have a journal, and only some stores keep one. */
function journalFor(model: StoreModel, claim: ModelClaim) {
  const row = expected.owned(model, claim)
  return row?.state === 'in_progress' ? row : undefined
}

const intentInput = { position, windowMs: fc.option(spans, { nil: undefined }), leaseMs: spans }
const intentBy = (owner: typeof pick) =>
  step({
    name: 'open intent',
    by: ['owner'],
    input: fc.record({ pick: owner, ...intentInput }),
    when: hasClaims,
    async run(model, { store }, { pick, position, windowMs, leaseMs }) {
      const claim = claimFrom(model, pick)
      const row = journalFor(model, claim)
      if (store.steps === undefined || (row && !row.journal)) return
      const other = openEffect(row?.journal)
      if (other && other.position !== position) return
      const epoch = row?.journal?.steps.get(position)?.epoch ?? 0
      const key = downstreamKeyOf({ key: claim.key, position, epoch })
      const wanted = { position, name: 'charge', epoch, key, windowMs }
      const result = await store.steps.openIntent(real(claim), wanted, leaseMs)
      const foreseen = row?.journal && openIntent(row.journal, { position, windowMs, nowMs: model.nowMs })
      assert.equal(result, foreseen ?? 'claim-lost')
      if (row && result === 'written') row.lockedUntil = model.nowMs + leaseMs
    },
  })

const intent = intentBy(pick)
export const intentOfLatest: fc.Arbitrary<StoreCommand> = intentBy(latest)

const result = step({
  name: 'record result',
  by: ['owner'],
  input: fc.record({ pick, position, value: fc.constantFrom('1', '2'), leaseMs: spans }),
  when: hasClaims,
  async run(model, { store }, { pick, position, value, leaseMs }) {
    const claim = claimFrom(model, pick)
    const row = journalFor(model, claim)
    if (store.steps === undefined || (row && !row.journal)) return
    const result = await store.steps.recordResult(real(claim), { position, value }, leaseMs)
    const foreseen = row?.journal && recordResult(row.journal, position, value)
    assert.equal(result, foreseen ?? 'claim-lost')
    if (row && result === 'written') row.lockedUntil = model.nowMs + leaseMs
  },
})

const resumable = step({
  name: 'resumable',
  by: [],
  input: fc.constantFrom(1, 10),
  async run(model, { store }, limit) {
    if (store.steps === undefined) return
    const found = (await store.resumable({ limit })).map(
      row => keys.find(each => idOf(each) === row.identity.id) ?? '?',
    )
    const foreseen = expected.resumable(model)
    assert.equal(found.length, Math.min(limit, foreseen.length))
    for (const name of found) assert.ok(foreseen.includes(name), `${name} is resumable`)
  },
})

const park = step({
  name: 'park',
  by: ['owner'],
  input: fc.record({ pick, replyLost: fc.boolean() }),
  when: hasClaims,
  async run(model, { store }, input) {
    const claim = claimFrom(model, input.pick)
    for (let sent = 0; sent <= Number(input.replyLost); sent += 1)
      assert.equal(await store.park(real(claim), 'poison'), expected.park(model, claim, 'poison'))
  },
})

const unpark = step({
  name: 'unpark',
  by: ['operator'],
  input: key,
  async run(model, { store }, key) {
    assert.equal((await store.unpark(idOf(key), act)).kind, expected.unpark(model, key))
    const parked = (await store.list({ limit: 10, parked: true })).records.map(record => record.id)
    assert.deepEqual(
      parked,
      keys
        .filter(each => model.rows.get(each)?.parked)
        .map(idOf)
        .toSorted(),
    )
  },
})

export const phasedCommands: readonly fc.Arbitrary<StoreCommand>[] = [intent, intent, result, resumable, park, unpark]
