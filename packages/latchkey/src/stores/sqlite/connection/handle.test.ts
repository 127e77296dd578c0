import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sqliteDrivers } from '../../../../test/sqlite/drivers.ts'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import { handleOf, isInTransaction } from './handle.ts'

describe.each(sqliteDrivers)('a handle of $driver', ({ open }) => {
  let harness: SqliteHarness
  beforeEach(async () => {
    harness = await sqliteHarness(open)
  })
  afterEach(() => harness.close())

  it('sees what others committed after it read one row of many', () => {
    const [reader, writer] = [handleOf(open(harness.path)), handleOf(open(harness.path))]
    writer.query('INSERT INTO orders VALUES (?1), (?2)', ['old', 'old'])
    expect(reader.rows('SELECT value FROM orders')[0]).toEqual({ value: 'old' })
    writer.query(`UPDATE orders SET value = 'new'`)
    expect(reader.rows('SELECT value FROM orders')[0]).toEqual({ value: 'new' })
    reader.exec('BEGIN IMMEDIATE; COMMIT')
    for (const handle of [reader, writer]) handle.close()
  })

  it('binds a single blob, and gives blobs back as Uint8Array', () => {
    const handle = handleOf(open(harness.path))
    const [row] = handle.query('SELECT ?1 AS blob, hex(?1) AS hex', [Uint8Array.of(9, 0, 1, 2).subarray(1)])
    expect(row).toEqual({ blob: Uint8Array.of(0, 1, 2), hex: '000102' })
    expect(row?.blob).toBeInstanceOf(Uint8Array)
    handle.close()
  })

  it('finds out about a transaction also where the driver does not say', () => {
    const database = open(harness.path)
    const silent = {
      exec: (sql: string) => database.exec(sql),
      prepare: () => ({ all: () => [], run: () => ({ changes: 0 }) }),
      close: () => {},
    }
    expect(isInTransaction(silent)).toBe(false)
    expect(isInTransaction(database)).toBe(false)
    database.exec('BEGIN')
    expect([isInTransaction(silent), isInTransaction(database)]).toEqual([true, true])
    database.exec('ROLLBACK')
    database.close()
  })
})
