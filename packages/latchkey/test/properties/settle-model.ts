/** How the model settles what is unknown: by evidence, by a person, and who may ask about it meanwhile. */
import { generationOf, type ModelLookup, type ModelMessage, type ModelPiece } from './evidence-model.ts'
import { openEffect, triedAgain } from './journal-model.ts'
import { answerRow, backAgain, keepAtLeast, type ModelRow, type StoreModel } from './store-model.ts'
import type { State } from '../../src/ports/store.ts'

/** Of phased work, whose row was granted to work of another kind since: the port leaves open what settles it. */
export function isMixed(row: ModelRow | undefined): boolean {
  return row?.journal !== undefined && row.recovery !== 'resume'
}

export function effectInDoubt(row: ModelRow | undefined): { position: number; epoch: number } | undefined {
  const open = row?.recovery === 'resume' ? openEffect(row.journal) : undefined
  return open && { position: open.position, epoch: open.step.epoch }
}

type Verdict = Pick<ModelPiece, 'verdict' | 'gives' | 'value'>

/** It gives what the row needs, or it never happened. */
function answersQuestion(row: ModelRow, { verdict, gives }: Verdict): boolean {
  return verdict === 'never-happened' || gives === (effectInDoubt(row) ? 'result' : 'outcome')
}

function settleRow(model: StoreModel, row: ModelRow, found: Verdict, retentionMs: number): void {
  const open = row.recovery === 'resume' ? openEffect(row.journal) : undefined
  if (found.gives === 'outcome') return answerRow(model, row, { answer: found.value, retentionMs, by: 'evidence' })
  if (found.verdict === 'never-happened') triedAgain(row.journal, 1)
  else if (open) Object.assign(open.step, { state: 'done', result: found.value })
  keepAtLeast(model, row, retentionMs)
  backAgain(row, model.nowMs)
}

export function settle(
  model: StoreModel,
  key: string,
  { found, retentionMs }: { found: Verdict; retentionMs: number },
): State | 'settled' | 'not-found' | 'wrong-verdict' {
  const row = model.rows.get(key)
  if (row?.state !== 'unknown') return row?.state ?? 'not-found'
  if (!answersQuestion(row, found)) return 'wrong-verdict'
  model.acts.push({ key, act: 'settle' })
  settleRow(model, row, found, retentionMs)
  return 'settled'
}

/** It is about an earlier generation of the row. */
export function isOld({ evidence }: StoreModel, { key, generation }: { key: string; generation: number }): boolean {
  return generation !== generationOf(evidence, key)
}

/** Two generations met in one tick: only a clock that runs by itself decides whether it was before or after. */
export function isOnTheEdge(model: StoreModel, found: { key: string; generation: number; at: number }): boolean {
  return isOld(model, found) && model.rows.get(found.key)?.createdAt === found.at
}

export function couldSettle(model: StoreModel, piece: ModelPiece): boolean {
  const row = model.rows.get(piece.key)
  if (row?.state !== 'unknown' || isOld(model, piece) || !answersQuestion(row, piece)) return false
  const doubt = effectInDoubt(row)
  return doubt?.position === piece.effect?.position && doubt?.epoch === piece.effect?.epoch
}

export type Applied = 'settled' | 'applied-before' | 'too-early' | 'not-applicable'

export function foreseeApply(model: StoreModel, piece: ModelPiece, quarantineMs: number): Applied {
  if (piece.applied) return 'applied-before'
  if (!couldSettle(model, piece)) return 'not-applicable'
  const since = model.rows.get(piece.key)?.doubt?.since ?? 0
  return piece.verdict === 'never-happened' && piece.at < since + quarantineMs ? 'too-early' : 'settled'
}

export function apply(model: StoreModel, piece: ModelPiece, retentionMs: number): State | undefined {
  const row = model.rows.get(piece.key)
  if (!row) return undefined
  settleRow(model, row, piece, retentionMs)
  piece.applied = true
  return row.state
}

export function waiting(model: StoreModel): ModelPiece[] {
  const positive = model.evidence.pieces.filter(piece => !piece.applied && piece.verdict !== 'never-happened')
  return positive.filter(piece => couldSettle(model, piece))
}

/** `undefined`: this delivery is known. Otherwise when the message came first. */
export function receive(
  model: StoreModel,
  { key, ref, signedAt }: { key: string; ref: string; signedAt: number },
): ModelMessage | undefined {
  const { messages } = model.evidence
  const known = messages.get(ref)
  if (known && signedAt <= known.signedAt) return undefined
  const message = known ?? { at: model.nowMs, generation: generationOf(model.evidence, key), signedAt }
  message.signedAt = signedAt
  messages.set(ref, message)
  return message
}

export function lookupsDue(model: StoreModel, firstInMs: number): string[] {
  const isDue = ({ parked, doubt }: ModelRow) =>
    doubt !== undefined && !parked && model.nowMs >= (doubt.lookUpAt ?? doubt.since + firstInMs)
  return [...model.rows].filter(([, row]) => isDue(row)).map(([key]) => key)
}

/** The row that this look-up is about, while it is its owner's. */
export function lookedAt(model: StoreModel, { key, fence, look }: ModelLookup): ModelRow | undefined {
  const row = model.rows.get(key)
  return row?.fence === fence && row.doubt?.look === look ? row : undefined
}
