import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itSurvivesCrashes } from './crashes.ts'

describePostgres('four processes on one PostgreSQL', database => itSurvivesCrashes(() => database.url))
