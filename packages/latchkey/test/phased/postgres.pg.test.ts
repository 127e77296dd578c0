import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itRunsInPhases } from './steps.ts'

describePostgres('phased work on PostgreSQL', database => itRunsInPhases(() => database.url))
