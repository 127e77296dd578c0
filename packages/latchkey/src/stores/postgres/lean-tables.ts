/** The sixth migration: what every claim and every answer pays for the table itself. */
import { expiryOf, type Dialect } from './dialect.ts'

/**
 * No row is rewritten. The functions of the version before go, because some of them have other results now.
 */
export function leanTables(sql: Dialect): string {
  const constraints = Object.keys(keyRules).map(name => `drop constraint ${name}`)
  return `alter table ${sql.keys} ${constraints.join(', ')},
  -- Room for the answer of one row beside the others, and not for those of many, which take the space of dead versions.
  set (fillfactor = 95);
drop index ${sql.schema}.keys_expires_at;
-- Many rows share an entry, so that it takes a third of the space.
create index keys_expires_at on ${sql.keys} (${expiryOf('expires_at')});
drop function if exists ${outdatedFunctions.map(name => `${sql.schema}.${name}`).join(', ')};

`
}

const outdatedFunctions = [
  'claim_one',
  'complete_one',
  'claim_many',
  'complete_many',
  'heartbeat_many',
  'read_many',
  'reserve',
  'record_fresh',
  'record_last',
]

/**
 * What holds for every row of the keys. Not constraints of the table: the server reads and prepares each of them again for every
 * statement, which cost a claim and its answer more than the row itself. The tests of this store add them, so that no
 * statement can break them unseen.
 */
export const keyRules: Readonly<Record<string, string>> = {
  keys_fence_rises_from_one: 'fence >= 1',
  keys_state_is_known: 'state between 0 and 4',
  keys_recovery_is_known: 'recovery between 0 and 2',
  keys_in_progress_has_a_lease: '(state = 1) = (locked_until is not null)',
  keys_completed_has_a_time: '(state = 2) = (completed_at is not null)',
  keys_waiting_is_due: '(state in (0, 3)) = (due_at is not null)',
  keys_completed_is_never_parked: 'state <> 2 or parked_at is null',
  keys_gone_was_completed: 'gone_at is null or state = 2',
}
