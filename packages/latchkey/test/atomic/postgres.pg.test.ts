import { describe } from 'vitest'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itRunsOneOfMany } from './duplicates.cases.ts'
import { itEndsAtomically } from './endings.cases.ts'
import { postgresShop } from './fixture.ts'

describePostgres('an atomic operation on PostgreSQL', database => itEndsAtomically(() => postgresShop(database.url)))

describePostgres('many callers of one atomic operation on PostgreSQL', database => {
  describe('at READ COMMITTED', () => itRunsOneOfMany(() => postgresShop(database.url)))
})
