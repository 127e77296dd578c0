import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itWorksInProcesses } from './processes.cases.ts'

describePostgres('worker processes on one PostgreSQL', database => itWorksInProcesses(() => database.url))
