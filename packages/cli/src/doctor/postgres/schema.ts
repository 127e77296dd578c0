/** What differs from the tables that the steps make, with the statement that repairs it. */
import { type Check, type Finding, ok, skip } from '../finding.ts'
import { type PostgresUnderCheck, quoted } from './under-check.ts'
import { expectedObjects } from './expected.ts'
import { readObjects, type SchemaObject } from './objects.ts'

export function schemaCheck({ pool, schema, store }: Pick<PostgresUnderCheck, 'pool' | 'schema' | 'store'>): Check {
  return {
    name: 'schema',
    async look() {
      const checked = await store.check?.()
      const isOlder =
        checked?.kind === 'not-migrated' && /last step is|no such schema|none of them/.test(checked.message)
      if (isOlder) return skip('compared when it is migrated')
      const found = await readObjects(pool, schema)
      if (found === undefined) return skip(`there is no schema ${schema}`)
      const drift = compareObjects(found, schema)
      const names = `${expectedObjects.length} tables, columns, constraints, indexes and functions`
      return drift.length === 0 ? ok(`${names} are as they were made`) : drift
    },
  }
}

/** What is there in addition is the business of whoever made it. */
export function compareObjects(found: readonly SchemaObject[], schema: string): readonly Finding[] {
  const byName = new Map(found.map(object => [keyOf(object), object]))
  const missingTables = new Set(
    expectedObjects
      .filter(({ kind, name }) => kind === 'table' && !byName.has(`table ${name}`))
      .map(({ name }) => name),
  )
  return expectedObjects.flatMap(expected => {
    // A missing table is one finding, and its statement has its columns and constraints.
    if (expected.kind !== 'index' && expected.table !== undefined && missingTables.has(expected.table)) return []
    const object = byName.get(keyOf(expected))
    if (object === undefined) return [missing(expected, schema)]
    if (object.invalid === true) return [unfinished(expected, schema)]
    return object.definition === expected.definition ? [] : [different(expected, object, schema)]
  })
}

function keyOf({ kind, name, table }: SchemaObject): string {
  return table === undefined ? `${kind} ${name}` : `${kind} ${table}.${name}`
}

const titleOf = (object: SchemaObject): string => `the ${keyOf(object)}`

function missing(object: SchemaObject, schema: string): Finding {
  return {
    verdict: 'FAIL',
    text: `${titleOf(object)} is missing`,
    cure: 'run the statement as the owner of the tables',
    sql: [statementOf(object, schema)],
  }
}

function unfinished(index: SchemaObject, schema: string): Finding {
  return {
    verdict: 'FAIL',
    text: `${titleOf(index)} was not finished, and is not used`,
    cure: 'run the statement as the owner of the tables',
    sql: [`reindex index concurrently ${quoted(schema)}.${quoted(index.name)};`],
  }
}

function different(expected: SchemaObject, found: SchemaObject, schema: string): Finding {
  const isReplaceable = expected.kind === 'function' || expected.kind === 'index'
  const drop = expected.kind === 'index' ? [`drop index concurrently ${quoted(schema)}.${quoted(expected.name)};`] : []
  return {
    verdict: 'FAIL',
    text:
      expected.kind === 'function'
        ? `${titleOf(expected)} was changed`
        : `${titleOf(expected)} was changed: it is ${found.definition}, and was made as ${expected.definition}`,
    cure: isReplaceable ? 'run the statements as the owner of the tables' : 'undo the change',
    ...(isReplaceable ? { sql: [...drop, statementOf(expected, schema)] } : {}),
  }
}

function statementOf({ kind, name, table = '', definition }: SchemaObject, schema: string): string {
  const within = (text: string) => text.replaceAll('{schema}', quoted(schema))
  const place = `${quoted(schema)}.${quoted(table)}`
  switch (kind) {
    case 'table':
      return tableStatement(name, schema)
    case 'column':
      return within(`alter table ${place} add column ${quoted(name)} ${definition};`)
    case 'constraint':
      return within(`alter table ${place} add constraint ${quoted(name)} ${definition};`)
    case 'index':
      // Beside live traffic; it cannot run in a transaction.
      return within(`${definition.replace(/^CREATE (UNIQUE )?INDEX /, 'CREATE $1INDEX CONCURRENTLY ')};`)
    case 'function':
      return within(`${definition.trimEnd()};`)
  }
}

function tableStatement(name: string, schema: string): string {
  const parts = expectedObjects.filter(({ table }) => table === name)
  const columns = parts.filter(({ kind }) => kind === 'column').map(part => `${quoted(part.name)} ${part.definition}`)
  const constraints = parts
    .filter(({ kind }) => kind === 'constraint')
    .map(part => `constraint ${quoted(part.name)} ${part.definition}`)
  return `create table ${quoted(schema)}.${quoted(name)} (${[...columns, ...constraints].join(', ')});`.replaceAll(
    '{schema}',
    quoted(schema),
  )
}
