/** One act on one row: read, done on what was read, and told. */
import type { ActOutcome, AdminKey } from 'latchkey/admin'
import type { Context } from '../program/context.ts'
import { usage } from '../program/exit.ts'
import type { Flags } from '../program/flags.ts'
import { type Done, done, found } from './answers.ts'
import type { Desk } from './desk.ts'

/** What an act on a row relies on. */
export interface OnRow {
  readonly id: string
  readonly version: string
  readonly reason: string
}

export const reasonOption = { flags: '--reason <text>', summary: 'why; it is stored for good' } as const

/** Refused before anything is read. */
export async function reasonOf({ terminal }: Context, flags: Flags): Promise<string> {
  const given = flags.text('reason')
  if (given !== undefined && given.trim() !== '') return given
  if (!terminal.canAsk) throw usage('--reason is missing: who reads the audit wants to know why')
  const asked = await terminal.ask('Reason: ')
  if (asked.trim() === '') throw usage('a reason is needed: nothing was done')
  return asked
}

export async function readKey(desk: Desk, id: string): Promise<AdminKey> {
  return found(await desk.key(id), `row ${id}`)
}

/** The outcome of an act on a row. If somebody else was faster, says what they did. */
export async function settled(context: Context, desk: Desk, id: string, outcome: ActOutcome): Promise<Done> {
  if (outcome.kind === 'row-moved' || outcome.kind === 'wrong-state') await tellLastAct(context, desk, id)
  return done(outcome, `row ${id}`)
}

async function tellLastAct({ out, when }: Context, desk: Desk, id: string): Promise<void> {
  const read = await desk.audit({ id, limit: 20 })
  if (read.kind !== 'found') return
  const last = read.value.items.find(({ refused }) => refused === undefined || refused === null)
  if (last !== undefined) out.talk(`last act: ${last.act} by ${last.by}, ${when(last.atMs)}: ${last.reason}`)
}

/** What a call on one row prints. */
export function tell({ out }: Context, id: string, { row, auditId }: Done): void {
  const state = row === undefined || row === null ? 'gone' : row.state
  out.value({ id, result: 'done', auditId, row: row ?? null }, () => [`${id}  done, now ${state}  (audit ${auditId})`])
}
