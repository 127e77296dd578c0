import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { rawPostgres } from './databases.ts'
import { eraseCases } from './erase.cases.ts'
import { sealedCases } from './sealed.cases.ts'

describePostgres('an encrypted PostgreSQL database', database => sealedCases(() => rawPostgres(database.url)))
describePostgres('erasing a tenant from PostgreSQL', database => eraseCases(() => rawPostgres(database.url)))
