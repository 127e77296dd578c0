/** Names under which rows are found. */
import type { NewReference, References, StoredReference } from '../../../ports/faculties/references.ts'
import type { OwnerResult, Claim } from '../../../ports/store.ts'
import { stateCodes } from '../../shared/codes.ts'
import type { OpenTransactions } from '../atomic/open-transactions.ts'
import type { SqliteTx } from '../atomic/transaction.ts'
import type { Database } from '../connection/database.ts'
import type { Handle } from '../connection/handle.ts'
import type { SqliteRow } from '../driver.ts'
import { readNowMs } from '../keys/row.ts'

export function sqliteReferences(database: Database, transactions: OpenTransactions): References<SqliteTx> {
  return {
    add: (claim, references) => database.write(handle => add(handle, claim, references)),
    addIn: (tx, id, references) =>
      database.translateErrors(async () => transactions.of(tx).use(handle => put(handle, id, references))),
    find: (index, { limit }) => database.read(handle => handle.rows(findSql, [index, limit]).map(referenceOf)),
    of: id => database.read(handle => handle.rows(ofSql, [id]).map(referenceOf)),
  }
}

const ownedSql = `SELECT id FROM latchkey_keys WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state = ${stateCodes.in_progress}`
const putSql =
  'INSERT INTO latchkey_key_references (id, ref, sealed, at_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING'
const columns = 'r.id, r.ref, r.sealed, r.at_ms'
export const findSql: string = `SELECT ${columns} FROM latchkey_key_references AS r WHERE r.ref = ?1 ORDER BY r.seq DESC LIMIT ?2`
const ofSql = `SELECT ${columns} FROM latchkey_key_references AS r WHERE r.id = ?1 ORDER BY r.seq`

function add(handle: Handle, { id, fence, claimId }: Claim, references: readonly NewReference[]): OwnerResult {
  if (handle.rows(ownedSql, [id, fence, claimId]).length === 0) return 'claim-lost'
  put(handle, id, references)
  return 'written'
}

function put(handle: Handle, id: string, references: readonly NewReference[]): void {
  const atMs = readNowMs(handle)
  for (const { index, sealed } of references) handle.run(putSql, [id, index, sealed ?? null, atMs])
}

function referenceOf({ id, ref, sealed, at_ms }: SqliteRow): StoredReference {
  return {
    id: String(id),
    index: String(ref),
    sealed: sealed === null ? undefined : String(sealed),
    atMs: Number(at_ms),
  }
}
