/** The audit of all that operators do: added to, and read. */
import type { AdminRecords, EntryQuery, NewEntry } from '../../../ports/faculties/admin.ts'
import { type EntryColumns, entryOf } from '../../shared/admin/rows.ts'
import type { RunStatement } from '../connection/statement.ts'
import { readable } from '../sql/columns.ts'
import { epochMs } from '../sql/fragments.ts'
import { adminNames, type Dialect } from '../sql/names.ts'
import type { Connections } from './transaction.ts'

export function entryCalls({ sql, run }: Connections): Pick<AdminRecords, 'addEntry' | 'entries'> {
  return {
    addEntry: entryWriter(sql, run),
    async entries(query) {
      const rows = await run<EntryColumns>(entriesStatement(sql, query), [
        ...[query.by === undefined ? null : readable(query.by), query.id ?? null],
        ...[query.after ?? query.before ?? null, query.limit],
      ])
      return rows.map(entryOf)
    },
  }
}

export function entryWriter(sql: Dialect, run: RunStatement): AdminRecords['addEntry'] {
  const write = entryText(sql)
  return async entry => void (await run(write, entryValues(entry)))
}

/** Atomic: one statement. A request that acted before adds nothing; its refused attempts are entries of their own. */
export function entryText(sql: Dialect): string {
  const { details } = adminNames(sql)
  return `with added as (
      insert into ${sql.audit} (key_id, act, actor, reason, detail, at, scope)
      select $1::uuid, $2::text, $3::text, $4::text, $5::text, ${sql.now}, $6::text
      where $10::text is not null or not exists (select from ${details} d where d.request_id = $8::text and d.refused is null)
      returning audit_id
    )
    insert into ${details} (audit_id, source, request_id, evidence, refused)
    select a.audit_id, $7::text, $8::text, $9::text, $10::text from added a returning audit_id`
}

export function entryValues(entry: NewEntry): readonly (string | null)[] {
  const { id, act, by, reason, detail, scope, source, requestId, evidence, refused } = entry
  const said = [readable(by), readable(reason), readable(detail)]
  const proof = evidence === undefined ? undefined : readable(evidence)
  return [id, act, ...said, scope, source, requestId, proof, refused].map(text => text ?? null)
}

/** By the primary key, by the row, or by the actor; each has an index. The newest first, unless pages go forward. */
export function entriesStatement(sql: Dialect, { by, id, after, before }: EntryQuery): string {
  const conditions = [
    '$4::integer > 0',
    '($1::text is null or a.actor = $1::text)',
    '($2::uuid is null or a.key_id = $2::uuid)',
  ]
  if (by !== undefined) conditions.push('a.actor = $1::text')
  if (id !== undefined) conditions.push('a.key_id = $2::uuid')
  if (after !== undefined) conditions.push('a.audit_id > $3::bigint')
  else conditions.push(before === undefined ? '$3::bigint is null' : 'a.audit_id < $3::bigint')
  return `select a.audit_id, ${epochMs('a.at')} as at_ms, a.actor as by, a.act, a.key_id, a.reason, a.detail, d.source, d.request_id,
      d.evidence, d.from_state, d.to_state, d.fence, d.refused
    from ${sql.audit} a left join ${adminNames(sql).details} d on d.audit_id = a.audit_id
    where ${conditions.join(' and ')} order by a.audit_id ${after === undefined ? 'desc' : 'asc'} limit $4::integer`
}
