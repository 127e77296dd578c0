/** The sixth migration: what every claim and every answer pays for the table itself. */

/**
 * No row is rewritten. The functions of the version before go, because some of them have other results now. To the letter what
 * databases have: it never changes.
 */
export function leanTables(schema: string): string {
  return `alter table ${schema}.keys drop constraint keys_fence_rises_from_one, drop constraint keys_state_is_known, drop constraint keys_recovery_is_known, drop constraint keys_in_progress_has_a_lease, drop constraint keys_completed_has_a_time, drop constraint keys_waiting_is_due, drop constraint keys_completed_is_never_parked, drop constraint keys_gone_was_completed,
  -- Room for the answer of one row beside the others, and not for those of many, which take the space of dead versions.
  set (fillfactor = 95);
drop index ${schema}.keys_expires_at;
-- Many rows share an entry, so that it takes a third of the space.
create index keys_expires_at on ${schema}.keys (date_bin('10 seconds', expires_at, timestamptz '2000-01-01 00:00:00+00'));
drop function if exists ${schema}.claim_one, ${schema}.complete_one, ${schema}.claim_many, ${schema}.complete_many, ${schema}.heartbeat_many, ${schema}.read_many, ${schema}.reserve, ${schema}.record_fresh, ${schema}.record_last;

`
}

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
