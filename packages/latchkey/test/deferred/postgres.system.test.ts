import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itEndsOnce } from './kills.cases.ts'

describePostgres('a deferred export on one PostgreSQL', database => itEndsOnce(() => database.url))
