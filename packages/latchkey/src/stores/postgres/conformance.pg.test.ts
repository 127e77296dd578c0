import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { itConforms } from '../../../test/postgres/conformance.cases.ts'

describePostgres('the postgres store conforms:', database => itConforms(database, true))
