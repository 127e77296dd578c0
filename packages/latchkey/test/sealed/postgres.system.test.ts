import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { rawPostgres } from './databases.ts'
import { killCases } from './kills.cases.ts'

describePostgres('killed in the middle, on PostgreSQL', database => killCases(() => rawPostgres(database.url)))
