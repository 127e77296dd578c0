import pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { rawPostgres } from '../sealed/databases.ts'
import { killedTrailCases } from './kills.cases.ts'

describePostgres('the trail of killed processes on PostgreSQL', database => {
  /** As if its time had passed. */
  async function endLease(): Promise<void> {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query('update latchkey.audit_sink set locked_until = clock_timestamp() where locked_until is not null')
    await client.end()
  }
  killedTrailCases(() => rawPostgres(database.url), endLease)
})
