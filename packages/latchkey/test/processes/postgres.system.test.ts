import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itSurvivesCrashes } from './crashes.cases.ts'
import { withoutBatching } from './database.ts'

describePostgres('four processes on one PostgreSQL', database => itSurvivesCrashes(() => database.url))

describePostgres('four processes on one PostgreSQL, without batching', database =>
  itSurvivesCrashes(() => withoutBatching(database.url)),
)
