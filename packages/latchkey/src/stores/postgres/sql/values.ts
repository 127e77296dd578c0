/** What is handed to statements as parameters. */
import type { Claim, TakeOver } from '../../../ports/store.ts'
import { isWrittenUuid } from './uuid.ts'

/** PostgreSQL's text cannot hold U+0000. These columns are for people; what must be exact is hashed or stored as bytes. */
export function readable(text: string): string {
  return text.replaceAll('\0', '\uFFFD')
}

/** Exact to the last code unit, in characters that text can hold: for values that are compared and never shown. */
export function exact(text: string): string {
  return JSON.stringify(text)
}

/**
 * A batch takes only ids as the server writes them: it would refuse all of the batch for what is no uuid, and what is written in another
 * way would not be found again among the rows that it returns.
 */
export function areUuids({ id, claimId }: Pick<Claim, 'id' | 'claimId'>): boolean {
  return isWrittenUuid(id) && isWrittenUuid(claimId)
}

/**
 * What a batch sends, by identity. The functions lock the rows in the order of their arrays, so every process must have the same one. Of
 * ids that are written as the server writes them, the order of the text is the order of the bytes.
 */
export function inOrder<Item>(items: readonly Item[], idOf: (item: Item) => string): readonly Item[] {
  return items.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
}

/** No grant has the fence 0. */
const noFence = 0

/** The values of `mayTakeOver`. */
export function takeOverValues(takeOver: TakeOver | undefined): readonly unknown[] {
  if (takeOver === undefined) return [null, null]
  return takeOver === 'none' ? [noFence, null] : [takeOver.fence, takeOver.claimId]
}
