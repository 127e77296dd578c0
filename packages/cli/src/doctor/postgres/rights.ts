/** What requests, workers and operators need, and this role may not do. */
import { type Check, type Finding, ok, skip } from '../finding.ts'
import { type PostgresUnderCheck, quoted } from './under-check.ts'
import { expectedObjects } from './expected.ts'

const all = ['select', 'insert', 'update', 'delete'] as const

/** What operators did can be added to, and not changed. */
const addOnly = new Set(['audit', 'outbox_audit', 'inbox_audit', 'audit_records'])

function neededOn(table: string): readonly string[] {
  if (table === 'migrations') return ['select']
  return addOnly.has(table) ? ['select', 'insert'] : all
}

interface Lacking {
  readonly name: string
  readonly lacks: readonly string[]
}

export function rightsCheck({ pool, schema }: Pick<PostgresUnderCheck, 'pool' | 'schema'>): Check {
  return {
    name: 'rights',
    async look() {
      const { rows: found } = await pool.query<{ role: string; usage: boolean | null }>(
        `select current_user as role,
          (select pg_catalog.has_schema_privilege(n.oid, 'usage') from pg_catalog.pg_namespace n where n.nspname = $1) as usage`,
        [schema],
      )
      const { role = '', usage } = found[0] ?? {}
      if (usage === null || usage === undefined) return skip(`there is no schema ${schema}`)
      if (!usage) return [missing(role, `may not use the schema ${schema}`, `grant usage on schema ${quoted(schema)}`)]
      const lacking = await lackingTables()
      if (lacking.length === 0) return ok(`${role} may do what requests, workers and operators do`)
      return lacking.map(({ name, lacks }) =>
        missing(
          role,
          `may not ${lacks.join(', ')} on ${name}`,
          `grant ${lacks.join(', ')} on ${quoted(schema)}.${quoted(name)}`,
        ),
      )
    },
  }

  async function lackingTables(): Promise<readonly Lacking[]> {
    const tables = expectedObjects.filter(({ kind }) => kind === 'table').map(({ name }) => name)
    const asked = tables.flatMap(name => neededOn(name).map(right => ({ name, right })))
    const { rows } = await pool.query<{ name: string; right: string }>(
      `select c.relname as name, asked."right" from unnest($2::text[], $3::text[]) as asked (name, "right")
        join pg_catalog.pg_class c on c.relname = asked.name and c.relkind in ('r', 'p')
        join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = $1
        where not pg_catalog.has_table_privilege(c.oid, asked."right")`,
      [schema, asked.map(({ name }) => name), asked.map(({ right }) => right)],
    )
    return tables.flatMap(name => {
      const lacks = neededOn(name).filter(right => rows.some(row => row.name === name && row.right === right))
      return lacks.length === 0 ? [] : [{ name, lacks }]
    })
  }
}

function missing(role: string, what: string, grant: string): Finding {
  return {
    verdict: 'FAIL',
    text: `the role ${role} ${what}`,
    cure: 'run the grant as the owner',
    sql: [`${grant} to ${quoted(role)};`],
  }
}
