import Database from 'libsql'
import { describe } from 'vitest'
import { type RawDatabase, rawSqlite } from '../sealed/databases.ts'
import { killedTrailCases } from './kills.cases.ts'

describe('the trail of killed processes in a SQLite file', () => {
  let raw: RawDatabase
  const open = async () => (raw = await rawSqlite())
  /** As if its time had passed. */
  async function endLease(): Promise<void> {
    const outside = new Database(raw.place)
    outside.exec(
      'pragma busy_timeout = 5000; update latchkey_audit_sink set locked_until_ms = 0 where locked_until_ms > 0',
    )
    outside.close()
  }
  killedTrailCases(open, endLease)
})
