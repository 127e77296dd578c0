import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itDefers } from './deferred.cases.ts'

describePostgres('deferred work on PostgreSQL', database => itDefers(() => database.url))
