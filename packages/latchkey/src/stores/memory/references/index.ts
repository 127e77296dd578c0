/** Names under which rows are found. */
import type { NewReference, References } from '../../../ports/faculties/references.ts'
import type { OpenTransactions } from '../atomic/open-transactions.ts'
import type { MemoryTx } from '../atomic/transaction.ts'
import { isOwner } from '../keys/row.ts'
import type { Tables, Writable } from '../tables.ts'

export function memoryReferences(tables: Tables, transactions: OpenTransactions): References<MemoryTx> {
  return {
    async add(claim, references) {
      const row = tables.rows.get(claim.id)
      if (row?.state !== 'in_progress' || !isOwner(row, claim)) return 'claim-lost'
      put(tables, claim.id, references)
      return 'written'
    },
    addIn: async (tx, id, references) => transactions.of(tx).use(draft => put(draft, id, references)),
    find: async (index, { limit }) =>
      [...tables.references.values()]
        .flat()
        .filter(reference => reference.index === index)
        .sort((left, right) => right.atMs - left.atMs)
        .slice(0, limit),
    of: async id => tables.references.get(id) ?? [],
  }
}

function put(
  { references, now }: Pick<Writable, 'references' | 'now'>,
  id: string,
  given: readonly NewReference[],
): void {
  const known = references.get(id) ?? []
  const added = given.filter(({ index }) => known.every(each => each.index !== index))
  references.set(id, [...known, ...added.map(({ index, sealed }) => ({ id, index, sealed, atMs: now() }))])
}
