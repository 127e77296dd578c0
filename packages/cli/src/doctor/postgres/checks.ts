/** What is looked at in PostgreSQL, in this order. */
import type { Check } from '../finding.ts'
import { fitCheck } from '../fit.ts'
import { clockCheck } from './clock.ts'
import { durabilityCheck } from './durability.ts'
import { horizonCheck } from './horizon.ts'
import { poolerCheck } from './pooler.ts'
import { rightsCheck } from './rights.ts'
import { schemaCheck } from './schema.ts'
import type { PostgresUnderCheck } from './under-check.ts'
import { windowsCheck } from './windows.ts'

export function postgresChecks(database: PostgresUnderCheck): readonly Check[] {
  return [
    poolerCheck(database),
    fitCheck(() => database.store),
    schemaCheck(database),
    rightsCheck(database),
    durabilityCheck(database),
    clockCheck(database),
    horizonCheck(database),
    windowsCheck(database),
  ]
}
