/** Inputs and steps: how they are read, and as parts of the statements that change their key. */
import type { Journal, UnreadableJournal, WorkInput } from '../../../ports/steps.ts'
import { journalOf, type InputRow, type StepRow } from '../../shared/journal-row.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { epochMs, milliseconds, stepState } from '../sql/fragments.ts'
import { adminNames, type Dialect } from '../sql/names.ts'

type JournalRow = InputRow & { readonly now_ms: RawNumber } & (StepRow | { readonly position: null })

/** One statement, so one snapshot: never the input of one generation with the steps of another. */
export function readJournal(
  sql: Dialect,
  run: RunStatement,
): (id: string) => Promise<Journal | UnreadableJournal | undefined> {
  const text = `select i.version, i.input, ${epochMs('i.deadline_at')} as deadline_at_ms, p.position, p.name, p.kind, p.state, p.result, p.epoch,
      ${epochMs('p.repeat_until')} as repeat_until_ms, ${epochMs(sql.now)} as now_ms
    from ${sql.inputs} i left join ${sql.steps} p on p.id = i.id
    where i.id = $1::uuid order by p.position`
  return async id => {
    const rows = await run<JournalRow>(text, [id])
    const [first] = rows
    const steps = rows.filter(row => row.position !== null)
    return first && journalOf(first, steps, Number(first.now_ms))
  }
}

/** Work that begins now is not overdue. */
export function newJournal({ version, input }: WorkInput): Journal {
  return { work: { version, input }, overdue: false, steps: [] }
}

/** Version, input and deadline. */
export function workValues(work: WorkInput | undefined): readonly unknown[] {
  return [work?.version ?? null, work?.input ?? null, work?.deadlineInMs ?? null]
}

/**
 * For a claim: `fresh` is whether the grant begins a new generation of the row, in which nothing of the last one may be left. A row that is
 * resumed retains its input; one that has none yet, because it was not phased work before, gets it now. `$1` is the identity.
 */
export function beginJournal(
  sql: Dialect,
  { fresh, version, input, deadline }: Record<'fresh' | 'version' | 'input' | 'deadline', string>,
): string {
  return `input_kept as (
      insert into ${sql.inputs} as i (id, version, input, deadline_at)
      select $1::uuid, ${version}::integer, ${input}::text, ${sql.now} + ${milliseconds(deadline)}
      from granted where ${input}::text is not null
      on conflict (id) do update set version = excluded.version, input = excluded.input, deadline_at = excluded.deadline_at
      where ${fresh}
    ), input_gone as (
      delete from ${sql.inputs} i
      where i.id = $1::uuid and ${input}::text is null and ${fresh} and exists (select from granted)
    ), steps_gone as (
      delete from ${sql.steps} p where p.id = $1::uuid and ${fresh} and exists (select from granted)
    ), waiting_gone as (
      delete from ${sql.waiting} w where w.id = $1::uuid and exists (select from granted)
    )`
}

/** `from` has the ids of deleted rows. */
export function dropJournals(sql: Dialect, from: string): string {
  const drop = (table: string) => `delete from ${table} t where t.id = any(array(select f.id from ${from} f))`
  const dropOf = (table: string) => `delete from ${table} t where t.key_id = any(array(select f.id from ${from} f))`
  return `inputs_gone as (${drop(sql.inputs)}), steps_gone as (${drop(sql.steps)}), waiting_gone as (${drop(sql.waiting)}),
    references_gone as (${dropOf(sql.references)}), notes_gone as (${dropOf(adminNames(sql).notes)})`
}

/** The intents of `$1` are known not to have happened, if `from` has a row. */
export function tryAgain(sql: Dialect, from: string, epoch = 'p.epoch'): string {
  return `tried_again as (
      update ${sql.steps} p set state = ${stepState.again}, epoch = ${epoch}, repeat_until = null
      where p.id = $1::uuid and p.state = ${stepState.open} and exists (select from ${from})
    )`
}
