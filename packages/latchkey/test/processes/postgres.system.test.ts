import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itSurvivesCrashes } from './crashes.ts'
import { withoutBatching } from './place.ts'

describePostgres('four processes on one PostgreSQL', database => itSurvivesCrashes(() => database.url))

describePostgres('four processes on one PostgreSQL, without batching', database =>
  itSurvivesCrashes(() => withoutBatching(database.url)),
)
