/** Evidence is kept and applied, in any order and in any state. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { ApplyResult, Finding, FoundVerdict, Subject } from '../../src/ports/reconciliation.ts'
import { answerOf, halfTicks, inTurn, key, spans, step, type StoreCommand } from './command.ts'
import { generationOf, type ModelPiece } from './evidence-model.ts'
import * as expected from './settle-model.ts'
import { expired, gone, type StoreModel } from './store-model.ts'
import { downstreamKeyOf, idOf } from './store-names.ts'
import { present } from '../present.ts'

/** Mostly what the row needs, so that much is settled. */
const claimed = fc.record({
  verdict: fc.constantFrom('happened', 'happened', 'declined', 'never-happened', 'never-happened'),
  fits: fc.constantFrom(true, true, true, false),
  about: fc.constantFrom('doubt', 'doubt', 'doubt', 'whole', 'other epoch'),
})
type Claimed = typeof claimed extends fc.Arbitrary<infer Value> ? Value : never

export type Statement = Pick<ModelPiece, 'verdict' | 'gives' | 'value' | 'effect'>

export function statementOf(model: StoreModel, key: string, { verdict, fits, about }: Claimed): Statement {
  const doubt = expected.effectInDoubt(model.rows.get(key))
  const gives = (doubt === undefined) === fits ? 'outcome' : 'result'
  const other = { position: doubt?.position ?? 0, epoch: (doubt?.epoch ?? 0) + 1 }
  const effect = about === 'whole' ? undefined : about === 'doubt' ? doubt : other
  return { verdict, gives: verdict === 'never-happened' ? undefined : gives, value: '"found"', effect }
}

export function verdictOf({ verdict, gives, value }: Omit<Statement, 'effect'>): FoundVerdict {
  if (verdict === 'never-happened') return { kind: verdict }
  return gives === 'outcome' ? { kind: verdict, outcome: answerOf(value) } : { kind: verdict, value: value }
}

function subjectOf(key: string, { effect }: Statement): Subject {
  return { id: idOf(key), effect: effect && { ...effect, name: 'charge' } }
}

/** Whether a row that counts as absent, or is gone, has evidence, the port leaves open. */
function isOver(model: StoreModel, key: string): boolean {
  const row = model.rows.get(key)
  return row !== undefined && (expired(model, row) || gone(model, row))
}

/** Mostly about a row that is unknown, where there is one. */
const about = fc.record({ key, any: fc.constantFrom(false, false, false, true) })

function rowOf(model: StoreModel, { key, any }: { key: string; any: boolean }): string {
  const unknown = [...model.rows].find(([, row]) => row.state === 'unknown')
  return any ? key : (unknown?.[0] ?? key)
}

const keep = step({
  name: 'keep',
  by: [],
  input: fc.record({ about, claimed, again: fc.constantFrom(false, false, true) }),
  when: (model, { about }) => !isOver(model, rowOf(model, about)),
  async run(model, { store }, { about, ...rest }) {
    const { reconciliation } = store
    if (reconciliation === undefined) return
    const input = { key: rowOf(model, about), ...rest }
    const { evidence } = model
    const known = evidence.pieces.findLast(piece => piece.key === input.key && piece.source === 'ledger')
    const again = input.again && known !== undefined && !expected.isOld(model, known)
    if (!again) evidence.refs += 1
    const statement = statementOf(model, input.key, input.claimed)
    const ref = again ? known.ref : `finding ${evidence.refs}`
    const finding: Finding = { source: 'ledger', ref, verdict: verdictOf(statement) }
    const result = await reconciliation.keep(subjectOf(input.key, statement), finding)
    const foreseen = again ? 'duplicate' : model.rows.has(input.key) ? 'kept' : 'no-row'
    assert.equal(result.kind, foreseen)
    if (again) assert.equal('evidenceId' in result && result.evidenceId, known.evidenceId)
    if (result.kind === 'kept') addPiece(model, input.key, { ...statement, source: 'ledger', ref, ...result })
  },
})

type NewPiece = Statement & Pick<ModelPiece, 'source' | 'ref' | 'evidenceId'>

function addPiece(model: StoreModel, key: string, piece: NewPiece): void {
  const { verdict, gives, value, effect, source, ref, evidenceId } = piece
  const generation = generationOf(model.evidence, key)
  const kept = {
    key,
    generation,
    source,
    ref,
    at: model.nowMs,
    verdict,
    gives,
    value,
    effect,
    evidenceId,
    applied: false,
  }
  model.evidence.pieces.push(kept)
}

const deliver = step({
  name: 'deliver',
  by: [],
  input: fc.record({ key, claimed, nth: fc.nat({ max: 2 }), signedAt: fc.nat({ max: 5 }) }),
  when: (model, { key, nth }) => {
    const known = model.evidence.messages.get(`message ${nth} of ${key}`)
    return !isOver(model, key) && !(known && expected.isOnTheEdge(model, { key, ...known }))
  },
  async run(model, { store }, { key, claimed, nth, signedAt }) {
    const { reconciliation } = store
    if (reconciliation === undefined) return
    const ref = `message ${nth} of ${key}`
    const statement = statementOf(model, key, claimed)
    const delivery = { signedAtMs: Date.UTC(2026, 0, 1) + signedAt }
    const finding: Finding = { source: 'webhook', ref, verdict: verdictOf(statement), delivery }
    const result = await reconciliation.keep(subjectOf(key, statement), finding)
    const message = expected.receive(model, { key, ref, signedAt })
    const known = model.evidence.pieces.some(piece => piece.ref === ref && !expected.isOld(model, piece))
    const row = model.rows.get(key)
    const isAbout =
      message !== undefined && row !== undefined && !expected.isOld(model, { key, generation: message.generation })
    assert.equal(result.kind, message ? (isAbout ? (known ? 'duplicate' : 'kept') : 'no-row') : 'replayed')
    if (result.kind === 'kept') addPiece(model, key, { ...statement, source: 'webhook', ref, ...result })
  },
})

const applyAny = (nth: fc.Arbitrary<number>) =>
  step({
    name: 'apply',
    by: ['reconciler'],
    input: fc.record({
      nth,
      // Never none: within one tick the model does not know whether a row became unknown before or after the evidence came.
      quarantineMs: fc.constantFrom(1, 3).map(halfTicks),
      retentionMs: spans,
      asLookup: fc.constantFrom('no', 'no', 'held', 'invented'),
    }),
    when: ({ evidence }) => evidence.pieces.length > 0,
    async run(model, real, { nth, asLookup, ...options }) {
      const { pieces, lookups } = model.evidence
      const piece = pieces.at(-1 - (nth % pieces.length))
      assert.ok(piece)
      if (expected.isMixed(model.rows.get(piece.key)) || expected.isOnTheEdge(model, piece)) return
      const held = asLookup === 'held' ? lookups.findLast(each => each.key === piece.key) : undefined
      const { fence = 1 } = model.rows.get(piece.key) ?? {}
      const lookup = asLookup === 'invented' ? { key: piece.key, fence, look: 1_000 } : held
      const claim = lookup && { id: idOf(lookup.key), fence: lookup.fence, look: lookup.look }
      const result = await present(real.store.reconciliation).apply(piece.evidenceId, {
        ...options,
        ...(claim ? { lookup: claim } : {}),
      })
      const foreseen = expected.foreseeApply(model, piece, options.quarantineMs)
      const isStale = lookup !== undefined && !expected.lookedAt(model, lookup)
      if (isStale) {
        const allowed = ['claim-lost', ...(foreseen === 'settled' ? [] : [foreseen])]
        return assert.ok(allowed.includes(result.kind), `a stale look-up is ${result.kind}`)
      }
      assertApplied(model, piece, { result, foreseen })
      if (foreseen !== 'settled') return
      const to = expected.apply(model, piece, options.retentionMs)
      assert.equal(result.kind === 'settled' && result.to, to)
    },
  })

const apply = applyAny(fc.nat({ max: 4 }))

function assertApplied(
  model: StoreModel,
  piece: ModelPiece,
  { result, foreseen }: { result: ApplyResult; foreseen: expected.Applied },
): void {
  // Of an earlier generation: whether it is still known that it was applied, the port leaves open.
  if (expected.isOld(model, piece)) return assert.ok(['not-applicable', foreseen].includes(result.kind))
  assert.equal(result.kind, foreseen)
  if (result.kind === 'not-applicable') assert.equal(result.state, model.rows.get(piece.key)?.state)
}

const waiting = step({
  name: 'waiting',
  by: [],
  input: fc.constantFrom(1, 10, 10),
  async run(model, { store }, limit) {
    const { reconciliation } = store
    if (reconciliation === undefined) return
    const open = (piece: ModelPiece) =>
      expected.isMixed(model.rows.get(piece.key)) || expected.isOnTheEdge(model, piece)
    if (model.evidence.pieces.some(open)) return
    const found = await reconciliation.waiting({ limit: limit === 10 ? 1_000 : limit })
    const foreseen = expected.waiting(model).map(piece => piece.evidenceId)
    assert.equal(found.length, limit === 10 ? foreseen.length : Math.min(limit, foreseen.length))
    for (const each of found) assert.ok(foreseen.includes(each.evidenceId), `${each.evidenceId} waits`)
  },
})

const findEffect = step({
  name: 'find effect',
  by: [],
  input: fc.record({ key, position: fc.constantFrom(0, 1), epoch: fc.constantFrom(0, 0, 1, 2) }),
  when: (model, { key }) => !isOver(model, key),
  async run(model, { store }, { key, position, epoch }) {
    const { steps, reconciliation } = store
    if (steps === undefined || reconciliation === undefined) return
    const found = await reconciliation.findEffect(downstreamKeyOf({ key, position, epoch }))
    const effect = model.rows.get(key)?.journal?.steps.get(position)
    if (effect?.givenIn === epoch && effect.epoch === epoch) {
      assert.deepEqual(found, { id: idOf(key), effect: { position, name: 'charge', epoch } })
    } else if (effect === undefined) assert.equal(found, undefined)
    else if (found) assert.equal(found.effect?.epoch, epoch, 'a key is taken for that of another epoch')
  },
})

const applyNext = applyAny(fc.constant(0))
const kept = inTurn(keep, waiting, applyNext)

export const evidenceCommands: readonly fc.Arbitrary<StoreCommand>[] = [
  ...[keep, deliver, deliver, kept, kept, kept, apply, apply, waiting, findEffect, findEffect],
]
