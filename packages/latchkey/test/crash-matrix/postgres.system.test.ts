import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itSurvivesEveryPoint } from './crash-matrix.cases.ts'

describePostgres('the crash matrix on PostgreSQL', database => itSurvivesEveryPoint(() => database.url))
