/** The values of the application's, for a change of keys: paged by primary key, replaced where they are unchanged. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { StoredValue, ValuePage, Values } from '../../../ports/faculties/values.ts'
import { pageStart, pageValues, valuePage } from '../../shared/stored-values/pages.ts'
import { receivedId, replacementOf, type ValueRow, type ValueTableName } from '../../shared/stored-values/rows.ts'
import type { Database } from '../connection/database.ts'
import type { Handle } from '../connection/handle.ts'

export function sqliteValues(database: Database): Values {
  return {
    page: which => database.read(handle => page(handle, which)),
    replace: (before, after) => database.write(handle => replace(handle, before, after)),
  }
}

/** `?1` and `?2`: the key that the page begins after; `?3`: how many rows. */
const pages: Readonly<Record<ValueTableName, string>> = {
  keys: `SELECT id, fence AS number, outcome AS packed, description AS text FROM latchkey_keys
    WHERE id > ?1 AND ?2 IS NOT NULL AND (outcome IS NOT NULL OR description IS NOT NULL) ORDER BY id LIMIT ?3`,
  // One outcome for each identity.
  outcomes: `SELECT id, fence AS number, status, version, headers, body FROM latchkey_outcomes
    WHERE id > ?1 AND ?2 IS NOT NULL ORDER BY id LIMIT ?3`,
  inputs: `SELECT id, 0 AS number, input AS text FROM latchkey_inputs
    WHERE id > ?1 AND ?2 IS NOT NULL ORDER BY id LIMIT ?3`,
  steps: `SELECT id, position AS number, result AS text FROM latchkey_steps
    WHERE (id, position) > (?1, ?2) ORDER BY id, position LIMIT ?3`,
  evidence: `SELECT id, seq AS number, status, version, headers, body, result AS text, source, ref FROM latchkey_evidence
    WHERE ?1 IS NOT NULL AND seq > ?2 ORDER BY seq LIMIT ?3`,
  outbox: `SELECT '' AS id, id AS number, topic, aggregate, dedup_id, headers, payload AS body FROM latchkey_outbox AS o
    WHERE ?1 IS NOT NULL AND o.id > ?2 ORDER BY o.id LIMIT ?3`,
  outbox_delivered: `SELECT '' AS id, id AS number, downstream_id AS text FROM latchkey_outbox_delivered AS d
    WHERE ?1 IS NOT NULL AND d.id > ?2 ORDER BY d.id LIMIT ?3`,
  received: `SELECT '' AS id, 0 AS number, source, ref FROM latchkey_received
    WHERE (source, ref) > (?1, ?2) ORDER BY source, ref LIMIT ?3`,
  inbox_parked: `SELECT id, 0 AS number, headers, payload AS body FROM latchkey_inbox_parked
    WHERE id > ?1 AND ?2 IS NOT NULL ORDER BY id LIMIT ?3`,
  key_references: `SELECT id, seq AS number, ref, sealed AS text FROM latchkey_key_references
    WHERE ?1 IS NOT NULL AND seq > ?2 ORDER BY seq LIMIT ?3`,
}

function page(handle: Handle, { limit, after }: { limit: number; after?: string | undefined }): ValuePage {
  const start = pageStart(after, '')
  const rows = handle.rows(pages[start.table], pageValues(start, limit))
  // The statement names its columns as ValueRow has them, and the tables are STRICT.
  const found = rows as unknown as readonly ValueRow[]
  return valuePage(start, start.table === 'received' ? found.map(named) : found, limit)
}

function named(row: ValueRow): ValueRow {
  return { ...row, id: receivedId(row.source ?? '', row.ref ?? '') }
}

const isSameOutcome = 'headers = ?3 AND body IS ?4'

/** `?1` and `?2` are the key; then what was there, then what comes. */
const replacements: Readonly<Record<string, string>> = {
  'keys.outcome': 'UPDATE latchkey_keys SET outcome = ?4 WHERE id = ?1 AND fence = ?2 AND outcome = ?3',
  'keys.description': 'UPDATE latchkey_keys SET description = ?4 WHERE id = ?1 AND fence >= ?2 AND description = ?3',
  'outcomes.outcome': `UPDATE latchkey_outcomes SET headers = ?5, body = ?6 WHERE id = ?1 AND fence = ?2 AND ${isSameOutcome}`,
  'inputs.input': 'UPDATE latchkey_inputs SET input = ?4 WHERE id = ?1 AND ?2 IS NOT NULL AND input = ?3',
  'steps.step': 'UPDATE latchkey_steps SET result = ?4 WHERE id = ?1 AND position = ?2 AND result = ?3',
  'evidence.outcome': `UPDATE latchkey_evidence SET headers = ?5, body = ?6 WHERE id = ?1 AND seq = ?2 AND ${isSameOutcome}`,
  'evidence.step': 'UPDATE latchkey_evidence SET result = ?4 WHERE id = ?1 AND seq = ?2 AND result = ?3',
  // Named again meanwhile, under the name that comes: that one stays.
  'evidence.ref': `UPDATE OR IGNORE latchkey_evidence SET ref = ?4 WHERE id = ?1 AND seq = ?2 AND ref = ?3`,
  'received.ref': `UPDATE OR IGNORE latchkey_received SET ref = ?4 WHERE source = ?1 AND ?2 IS NOT NULL AND ref = ?3`,
  'outbox.message': `UPDATE latchkey_outbox SET headers = ?5, payload = ?6
    WHERE ?1 IS NOT NULL AND id = ?2 AND headers = ?3 AND payload = ?4`,
  'inbox_parked.parked': `UPDATE latchkey_inbox_parked SET headers = ?5, payload = ?6
    WHERE id = ?1 AND ?2 IS NOT NULL AND headers = ?3 AND payload = ?4`,
  'key_references.reference': `UPDATE OR IGNORE latchkey_key_references SET ref = ?5, sealed = ?6
    WHERE id = ?1 AND seq = ?2 AND ref = ?3 AND sealed IS ?4`,
  'outbox_delivered.downstream-id': `UPDATE latchkey_outbox_delivered SET downstream_id = ?4
    WHERE ?1 IS NOT NULL AND id = ?2 AND downstream_id = ?3`,
}

function replace(handle: Handle, before: StoredValue, after: StoredValue): 'replaced' | 'changed' {
  const { name, id, number, values } = replacementOf(before, after)
  const text = replacements[name]
  if (text === undefined) throw new LatchkeyError('invariant', `no statement replaces a value of ${name}`)
  return handle.run(text, [id, number, ...values]) === 1 ? 'replaced' : 'changed'
}
