import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itSettlesUnknowns } from './settle.cases.ts'

describePostgres('an unknown payment on PostgreSQL is settled', database => {
  itSettlesUnknowns(() => database.url)
})
