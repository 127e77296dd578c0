/** What the writes of a claim's owner share. Every statement matches fence AND claim id: an owner that was replaced matches no row. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import type { Answered } from '../connection/prepared.ts'
import type { RunStatement } from '../connection/statement.ts'

type LateRow = { readonly kind: 'settled' | 'repeated' | 'lost' }

/** The first statement is the usual case; only when it finds no row, the second one finds out why. */
export async function writeOrLate(
  run: RunStatement,
  { text, lateText }: { readonly text: string; readonly lateText: string },
  values: readonly unknown[],
): Promise<OwnerResult> {
  const written = await run(text, values)
  if (written.length > 0) return 'written'
  const [late] = await run<LateRow>(lateText, values)
  return late === undefined || late.kind === 'lost' ? 'claim-lost' : 'written'
}

export function owner({ id, fence, claimId }: Claim): readonly unknown[] {
  return [id, fence, claimId]
}

/** For a statement that begins with the values of `owner`. */
export const mine = 'k.id = $1::uuid and k.fence = $2::bigint and k.claim_id = $3::uuid'

/** The ids that a function returned, as one text. */
export function idText(ids: string): string {
  return `pg_catalog.array_to_string(${ids}, ',')`
}

/**
 * The row `k` of each element of a batch's arrays. Spelt so that the server can only go through the arrays, in their order, and look each row
 * up: a plain comparison would let it read the whole index instead, which a plan that was cached on a small table would keep doing.
 */
export function ofArray(id: string): string {
  return `k.id = any (array[${id}])`
}

/** Of the function of a batch, which returns null when it wrote all rows. */
export function idsWritten({ rows: [fields] }: Answered): (id: string) => boolean {
  if (fields === undefined) throw new LatchkeyError('invariant', 'a function of the store returned no row')
  // Null, or the text of `idText`.
  const [text] = fields as readonly (string | null)[]
  if (text === null || text === undefined) return () => true
  const written = new Set(text.split(','))
  return id => written.has(id)
}
