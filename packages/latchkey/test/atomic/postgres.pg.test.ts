import { describe } from 'vitest'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { itRunsOneOfMany } from './duplicates.ts'
import { itEndsAtomically } from './endings.ts'
import { postgresShop } from './shop.ts'

describePostgres('an atomic operation on PostgreSQL', database => itEndsAtomically(() => postgresShop(database.url)))

describePostgres('many callers of one atomic operation on PostgreSQL', database => {
  describe('at READ COMMITTED', () => itRunsOneOfMany(() => postgresShop(database.url)))
})
