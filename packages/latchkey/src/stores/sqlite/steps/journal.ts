/** The input and the steps of phased work, as rows. Who may write them is checked by the caller, in the same transaction. */
import type { EffectRef, Subject } from '../../../ports/reconciliation.ts'
import type { EffectDone, Intent, Journal, PhaseDone, UnreadableJournal, WorkInput } from '../../../ports/steps.ts'
import { stepKindCodes, stepStateCodes } from '../../shared/codes.ts'
import { type InputRow, journalOf, type StepRow } from '../../shared/journal-row.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { nowMsSql } from '../migrations/index.ts'

const { open, again, done } = stepStateCodes
const { phase, effect } = stepKindCodes

/** The row `k` has an open intent that may not be repeated: no process can continue with it. */
export const stuckSql: string = `
  EXISTS (SELECT 1 FROM latchkey_steps AS s
    WHERE s.id = k.id AND s.state = ${open} AND (s.repeat_until_ms IS NULL OR s.repeat_until_ms <= ${nowMsSql}))`

const isStuckSql = `SELECT 1 AS stuck FROM latchkey_keys AS k WHERE k.id = ?1 AND ${stuckSql}`

export function isStuck(handle: Handle, id: string): boolean {
  return handle.rows(isStuckSql, [id]).length === 1
}

const inputSql = 'SELECT version, input, deadline_at_ms FROM latchkey_inputs WHERE id = ?1'
const stepsSql = `
  SELECT position, name, kind, state, result, epoch, repeat_until_ms FROM latchkey_steps WHERE id = ?1 ORDER BY position`

export function readJournal(handle: Handle, id: string): Journal | UnreadableJournal | undefined {
  const [input] = handle.rows(inputSql, [id])
  if (input === undefined) return undefined
  const steps = handle.rows(stepsSql, [id])
  // The tables are STRICT and the columns are named as in InputRow and StepRow: SQLite has checked every type.
  return journalOf(input as unknown as InputRow, steps as unknown as readonly StepRow[], readNowMs(handle))
}

const keepInputSql = `
  INSERT INTO latchkey_inputs (id, version, input, deadline_at_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING`

/** Work that has begun keeps the input it began with, and its deadline. */
export function keepInput(handle: Handle, id: string, { version, input, deadlineInMs }: WorkInput): void {
  const deadlineAtMs = deadlineInMs === undefined ? null : Math.ceil(readNowMs(handle) + deadlineInMs)
  handle.rows(keepInputSql, [id, version, input, deadlineAtMs])
}

export function deleteJournal(handle: Handle, id: string): void {
  handle.rows('DELETE FROM latchkey_inputs WHERE id = ?1', [id])
  handle.rows('DELETE FROM latchkey_steps WHERE id = ?1', [id])
  handle.rows('DELETE FROM latchkey_key_references WHERE id = ?1', [id])
  handle.rows('DELETE FROM latchkey_notes WHERE id = ?1', [id])
}

const addPhaseSql = `
  INSERT INTO latchkey_steps (id, position, name, kind, state, epoch, result)
  VALUES (?1, ?2, ?3, ${phase}, ${done}, 0, ?4)
  ON CONFLICT DO NOTHING RETURNING position`

/** False: the position is taken, so this phase has run before. */
export function addPhase(handle: Handle, id: string, { position, name, value: result }: PhaseDone): boolean {
  return handle.rows(addPhaseSql, [id, position, storable(name), result ?? null]).length === 1
}

// An open intent may have reached the provider, so its window counts from its first try; one that is known not to have
// happened begins anew.
const putIntentSql = `
  INSERT INTO latchkey_steps AS s (id, position, name, kind, state, epoch, opened_at_ms, repeat_until_ms,
    downstream_key, downstream_epoch)
  VALUES (?1, ?2, ?3, ${effect}, ${open}, ?4, ?5, ?5 + ?6, ?7, ?4)
  ON CONFLICT (id, position) DO UPDATE
  SET state = ${open}, downstream_key = excluded.downstream_key, downstream_epoch = excluded.downstream_epoch,
      opened_at_ms = CASE s.state WHEN ${open} THEN s.opened_at_ms ELSE ?5 END,
      repeat_until_ms = CASE s.state WHEN ${open} THEN s.opened_at_ms ELSE ?5 END + ?6
  WHERE s.kind = ${effect} AND s.name = excluded.name AND s.epoch = excluded.epoch AND s.state <> ${done}
  RETURNING position`

/** False: the step there is another one, of another epoch, or done. */
export function putIntent(handle: Handle, id: string, { position, name, epoch, key, windowMs }: Intent): boolean {
  // Rounded down: a window is never taken for longer than it is.
  const window = windowMs === undefined ? null : Math.floor(windowMs)
  const put = handle.rows(putIntentSql, [id, position, storable(name), epoch, readNowMs(handle), window, key])
  return put.length === 1
}

const finishSql = `
  UPDATE latchkey_steps SET state = ${done}, result = ?3
  WHERE id = ?1 AND position = ?2 AND kind = ${effect} AND state = ${open}
  RETURNING position`
const finishedSql = `
  SELECT position FROM latchkey_steps WHERE id = ?1 AND position = ?2 AND kind = ${effect} AND state = ${done}`

/** Done already: the reply to the first write was lost, and the first result stays. False: there is no such effect. */
export function finishEffect(handle: Handle, id: string, { position, value: result }: EffectDone): boolean {
  if (handle.rows(finishSql, [id, position, result ?? null]).length === 1) return true
  return handle.rows(finishedSql, [id, position]).length === 1
}

const openEffectSql = `
  SELECT position, name, epoch FROM latchkey_steps WHERE id = ?1 AND state = ${open} ORDER BY position LIMIT 1`

/** The effect in doubt, of a row that is unknown. Steps are reached in order: it is the first one that is open. */
export function openEffect(handle: Handle, id: string): EffectRef | undefined {
  const [row] = handle.rows(openEffectSql, [id])
  return row && { position: Number(row.position), name: String(row.name), epoch: Number(row.epoch) }
}

export const byKeySql: string = `
  SELECT id, position, name, downstream_epoch FROM latchkey_steps WHERE downstream_key = ?1
  ORDER BY opened_at_ms DESC LIMIT 1`

export function findEffect(handle: Handle, downstreamKey: string): Subject | undefined {
  const [row] = handle.rows(byKeySql, [downstreamKey])
  if (row === undefined) return undefined
  const effect = { position: Number(row.position), name: String(row.name), epoch: Number(row.downstream_epoch) }
  return { id: String(row.id), effect }
}

const allowAgainSql = `
  UPDATE latchkey_steps SET state = ${again}, epoch = epoch + ?2 WHERE id = ?1 AND state = ${open}`

/** Known not to have happened: by its owner, who may use its key again, or by evidence, after which the key is a new one. */
export function allowAgain(handle: Handle, id: string, epoch: 'same-epoch' | 'next-epoch'): void {
  handle.rows(allowAgainSql, [id, epoch === 'next-epoch' ? 1 : 0])
}

const raiseEpochSql = `
  UPDATE latchkey_steps SET state = ${again}, epoch = epoch + 1 WHERE id = ?1 AND position = ?2 AND state = ${open}`

/** As `allowAgain` by evidence, for one effect. */
export function raiseEpoch(handle: Handle, id: string, position: number): void {
  handle.rows(raiseEpochSql, [id, position])
}
