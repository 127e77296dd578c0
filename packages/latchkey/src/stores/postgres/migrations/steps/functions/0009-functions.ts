/**
 * The functions of the ninth migration, which this release calls. Their text comes from the statements that they stand beside; a database
 * has it to the letter, so that it never changes.
 */
import { atomicFunctions } from '../../../atomic/functions.ts'
import { claimManyFunction } from '../../../keys/claim-sql.ts'
import { completeManyFunction } from '../../../keys/complete.ts'
import { heartbeatManyFunction } from '../../../keys/heartbeat.ts'
import { readManyFunction } from '../../../keys/read.ts'
import { outboxFunctions } from '../../../outbox/functions.ts'
import { oneRowFunction } from '../../../sql/functions.ts'
import type { Dialect } from '../../../sql/names.ts'

export function functions9(sql: Dialect): string {
  const keys = [oneRowFunction, claimManyFunction, completeManyFunction, heartbeatManyFunction, readManyFunction]
  return [...keys, atomicFunctions, outboxFunctions].map(made => made(sql)).join('')
}
