import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { withoutBatching } from '../processes/database.ts'
import { itSurvivesEveryPoint } from './crash-matrix.cases.ts'

describePostgres('the crash matrix on PostgreSQL, without batching', database =>
  itSurvivesEveryPoint(() => withoutBatching(database.url)),
)
