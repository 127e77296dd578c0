import { expect, it } from 'vitest'
import { dialect } from '../../sql/names.ts'
import type { SchemaState } from './read-schema.ts'
import { migrationsOf } from '../index.ts'
import { schemaFault } from './schema-fault.ts'

const sql = dialect('latchkey')
const tables = ['migrations', 'keys', 'outcomes', 'evidence', 'due', 'inputs', 'steps', 'waiting', 'outbox']

/** Of a database with nothing wrong; what takes two servers or an old one is put in its place. */
const fit: SchemaState = {
  serverVersion: 150_000,
  role: 'app',
  database: 'shop',
  standby: false,
  readOnly: false,
  mayCreateSchema: false,
  schema: { usage: true, create: false },
  tables: Object.fromEntries(tables.map(name => [name, ['select', 'insert', 'update', 'delete'] as const])),
  functions: Object.fromEntries(Object.values(sql.functions).map(name => [name.split('.')[1], true])),
  columns: { version: 'integer', name: 'text', applied_at: 'timestamp with time zone', shared_from: 'integer' },
  steps: migrationsOf(sql).map(({ version, name }) => ({ version, name, sharedFrom: undefined })),
}

it('finds nothing wrong where nothing is', () => {
  expect(schemaFault(fit, sql)).toBeUndefined()
})

it('sends the application of a standby to the primary', () => {
  expect(schemaFault({ ...fit, standby: true, readOnly: true }, sql)).toMatchObject({
    kind: 'read-only',
    message: /standby.*primary/,
  })
})

it('names the server that is too old, and what is needed', () => {
  expect(schemaFault({ ...fit, serverVersion: 140_014 }, sql)).toMatchObject({
    kind: 'too-old',
    message: /PostgreSQL 15 or later is required \(got 14\)/,
  })
})
