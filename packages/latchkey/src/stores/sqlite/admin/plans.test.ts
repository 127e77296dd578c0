import Database from 'libsql'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import type { WorkListing } from '../../../ports/faculties/admin.ts'
import { findSql } from '../references/index.ts'
import { entriesSql } from './entries.ts'
import { asideSql, freshSql } from './lanes.ts'
import { groupsSql, workSql } from './work.ts'

let harness: SqliteHarness
let database: InstanceType<typeof Database>
beforeEach(async () => {
  harness = await sqliteHarness(path => new Database(path))
  await harness.open()
  database = new Database(harness.path)
})
afterEach(async () => {
  database.close()
  await harness.close()
})

function planOf(sql: string): string {
  const bound = sql.replaceAll(/\?\d+/g, "'1'")
  return (database.prepare(`EXPLAIN QUERY PLAN ${bound}`).all() as { detail: string }[])
    .map(({ detail }) => detail)
    .join('\n')
}

const page: Omit<WorkListing, 'kind'> = { limit: 50 }

it.each([
  ['unknown rows', workSql({ ...page, kind: 'unknown' }), 'latchkey_lookups_by_age'],
  ['parked rows', workSql({ ...page, kind: 'parked' }), 'latchkey_keys_parked'],
  ['overdue rows', workSql({ ...page, kind: 'overdue' }), 'latchkey_keys_owned'],
  ['groups of unknown rows', groupsSql('unknown'), 'l'],
  ['groups of parked rows', groupsSql('parked'), 'latchkey_keys_parked'],
  ['groups of overdue rows', groupsSql('overdue'), 'latchkey_keys_owned'],
  ['a reference', findSql, 'latchkey_key_references_by_ref'],
  ['new messages of a lane', freshSql, 'latchkey_outbox_in_order'],
  ['messages aside of a lane', asideSql, 'latchkey_outbox_parked_due'],
  ['entries of a row', entriesSql({ id: 'x', limit: 1 }), 'latchkey_audit_of'],
  ['entries of a person', entriesSql({ by: 'x', limit: 1 }), 'latchkey_audit_of_actor'],
])('%s come from an index, and no table of keys is scanned', (_, sql, index) => {
  const plan = planOf(sql)
  expect(plan).not.toMatch(/SCAN k\b(?! USING INDEX latchkey_keys_parked)/)
  expect(plan).toContain(index)
})
