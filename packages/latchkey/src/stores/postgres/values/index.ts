/** The values of the application's, for a change of keys: paged by primary key, replaced where they are unchanged. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { Values } from '../../../ports/faculties/values.ts'
import { pageStart, pageValues, valuePage } from '../../shared/stored-values/pages.ts'
import { receivedId, replacementOf, type ValueRow, type ValueTableName } from '../../shared/stored-values/rows.ts'
import type { RunStatement } from '../connection/statement.ts'
import { type Dialect, outboxNames } from '../sql/names.ts'
import { exact } from '../sql/values.ts'

/** Also stands for the row of a message, which has none. */
const firstId = '00000000-0000-0000-0000-000000000000'

export function postgresValues(sql: Dialect, run: RunStatement): Values {
  const pages = pageStatements(sql)
  const replacements = replaceStatements(sql)
  return {
    async page({ limit, after }) {
      const start = pageStart(after, firstId)
      const [first, second, size] = pageValues(start, limit)
      const ref = second === '' ? second : exact(String(second))
      const rows = await run<ValueRow>(pages[start.table], [first, start.table === 'received' ? ref : second, size])
      return valuePage(start, start.table === 'key_references' ? rows : rows.map(plainRef), limit)
    },
    async replace(before, after) {
      const { name, id, number, values } = replacementOf(before, after)
      const text = replacements[name]
      if (text === undefined) throw new LatchkeyError('invariant', `no statement replaces a value of ${name}`)
      const shown = before.kind === 'ref' ? values.map(value => exact(String(value))) : values
      const rows = await run(text, [id, number, ...shown.map(bindable)])
      return rows.length === 1 ? 'replaced' : 'changed'
    },
  }
}

/** As its source wrote it; the column holds JSON. */
function plainRef(row: ValueRow): ValueRow {
  if (row.ref === null || row.ref === undefined) return row
  const ref = String(JSON.parse(row.ref))
  return { ...row, ref, id: row.id === firstId ? receivedId(row.source ?? '', ref) : row.id }
}

/** The driver takes bytes as a Buffer. */
function bindable(value: string | Uint8Array | null): string | Buffer | null {
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value
}

/** `$1` and `$2`: the key that the page begins after; `$3`: how many rows. */
function pageStatements(sql: Dialect): Readonly<Record<ValueTableName, string>> {
  const { outbox, delivered } = outboxNames(sql)
  const byNumber = (number: string) =>
    `where $1::uuid is not null and ${number} > $2::bigint order by ${number} limit $3::integer`
  return {
    keys: `select t.id, t.fence as number, t.outcome as packed, t.description as text from ${sql.keys} t
      where t.id > $1::uuid and $2::bigint is not null and (t.outcome is not null or t.description is not null)
      order by t.id limit $3::integer`,
    outcomes: `select t.id, t.fence as number, t.status, t.version, t.headers, t.body from ${sql.outcomes} t
      where (t.id, t.fence) > ($1::uuid, $2::bigint) order by t.id, t.fence limit $3::integer`,
    inputs: `select t.id, 0 as number, t.input as text from ${sql.inputs} t
      where t.id > $1::uuid and $2::bigint is not null order by t.id limit $3::integer`,
    steps: `select t.id, t.position as number, t.result as text from ${sql.steps} t
      where (t.id, t.position) > ($1::uuid, $2::bigint::integer) order by t.id, t.position limit $3::integer`,
    evidence: `select t.key_id as id, t.evidence_id as number, t.status, t.version, t.headers, t.body, t.result as text,
      t.source, t.ref from ${sql.evidence} t ${byNumber('t.evidence_id')}`,
    outbox: `select '${firstId}' as id, t.id as number, t.topic, t.aggregate, t.dedup_id, t.headers, t.payload as body
      from ${outbox} t ${byNumber('t.id')}`,
    outbox_delivered: `select '${firstId}' as id, t.id as number, t.downstream_id as text
      from ${delivered} t ${byNumber('t.id')}`,
    received: `select '${firstId}' as id, 0 as number, t.source, t.ref from ${sql.received} t
      where (t.source, t.ref) > ($1::text, $2::text) order by t.source, t.ref limit $3::integer`,
    inbox_parked: `select t.id, 0 as number, t.headers, t.payload as body from ${sql.inboxParked} t
      where t.id > $1::uuid and $2::bigint is not null order by t.id limit $3::integer`,
    key_references: `select t.key_id as id, t.reference_id as number, t.ref, t.sealed as text from ${sql.references} t
      ${byNumber('t.reference_id')}`,
  }
}

/** `$1` and `$2` are the key; then what was there, then what comes. Atomic: each is one compare-and-set. */
function replaceStatements(sql: Dialect): Readonly<Record<string, string>> {
  const { outbox, delivered } = outboxNames(sql)
  const isSameOutcome = 't.headers = $3::text and t.body is not distinct from $4::bytea'
  return {
    'keys.outcome': `update ${sql.keys} t set outcome = $4::bytea
      where t.id = $1::uuid and t.fence = $2::bigint and t.outcome = $3::bytea returning 1`,
    'keys.description': `update ${sql.keys} t set description = $4::text
      where t.id = $1::uuid and t.fence >= $2::bigint and t.description = $3::text returning 1`,
    'outcomes.outcome': `update ${sql.outcomes} t set headers = $5::text, body = $6::bytea
      where t.id = $1::uuid and t.fence = $2::bigint and ${isSameOutcome} returning 1`,
    'inputs.input': `update ${sql.inputs} t set input = $4::text
      where t.id = $1::uuid and $2::bigint is not null and t.input = $3::text returning 1`,
    'steps.step': `update ${sql.steps} t set result = $4::text
      where t.id = $1::uuid and t.position = $2::bigint::integer and t.result = $3::text returning 1`,
    'evidence.outcome': `update ${sql.evidence} t set headers = $5::text, body = $6::bytea
      where t.key_id = $1::uuid and t.evidence_id = $2::bigint and ${isSameOutcome} returning 1`,
    'evidence.step': `update ${sql.evidence} t set result = $4::text
      where t.key_id = $1::uuid and t.evidence_id = $2::bigint and t.result = $3::text returning 1`,
    // Named again meanwhile, under the name that comes: that one stays.
    'evidence.ref': `update ${sql.evidence} t set ref = $4::text
      where t.key_id = $1::uuid and t.evidence_id = $2::bigint and t.ref = $3::text and not exists (
        select from ${sql.evidence} e where e.key_id = t.key_id and e.source = t.source and e.ref = $4::text) returning 1`,
    'received.ref': `update ${sql.received} t set ref = $4::text
      where t.source = $1::text and $2::bigint is not null and t.ref = $3::text and not exists (
        select from ${sql.received} r where r.source = t.source and r.ref = $4::text) returning 1`,
    'outbox.message': `update ${outbox} t set headers = $5::text, payload = $6::bytea
      where $1::uuid is not null and t.id = $2::bigint and t.headers = $3::text and t.payload = $4::bytea returning 1`,
    'inbox_parked.parked': `update ${sql.inboxParked} t set headers = $5::text, payload = $6::bytea
      where t.id = $1::uuid and $2::bigint is not null and t.headers = $3::text and t.payload = $4::bytea returning 1`,
    // Named again meanwhile, under the name that comes: that one stays.
    'key_references.reference': `update ${sql.references} t set ref = $5::text, sealed = $6::text
      where t.key_id = $1::uuid and t.reference_id = $2::bigint and t.ref = $3::text and t.sealed is not distinct from $4::text
        and not exists (select from ${sql.references} r where r.key_id = t.key_id and r.ref = $5::text and r.reference_id <> t.reference_id) returning 1`,
    'outbox_delivered.downstream-id': `update ${delivered} t set downstream_id = $4::text
      where $1::uuid is not null and t.id = $2::bigint and t.downstream_id = $3::text returning 1`,
  }
}
