/** What is handed to statements as parameters. */
import type { Claim, TakeOver } from '../../../ports/store.ts'
import { isUuid } from './columns.ts'

/** PostgreSQL's text cannot hold U+0000. These columns are for people; what must be exact is hashed or stored as bytes. */
export function readable(text: string): string {
  return text.replaceAll('\0', '\uFFFD')
}

/** Exact to the last code unit, in characters that text can hold: for values that are compared and never shown. */
export function exact(text: string): string {
  return JSON.stringify(text)
}

/** A batch takes no other ids: the server would refuse all of it for one of them. */
export function areUuids({ id, claimId }: Pick<Claim, 'id' | 'claimId'>): boolean {
  return isUuid(id) && isUuid(claimId)
}

/** No grant has the fence 0. */
const noFence = 0

/** The values of `mayTakeOver`. */
export function takeOverValues(takeOver: TakeOver | undefined): readonly unknown[] {
  if (takeOver === undefined) return [null, null]
  return takeOver === 'none' ? [noFence, null] : [takeOver.fence, takeOver.claimId]
}
