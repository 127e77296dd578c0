/** What is handed to statements as parameters. */
import type { TakeOver } from '../../../ports/store.ts'

/** Exact to the last code unit, in characters that text can hold: for values that are compared and never shown. */
export function exact(text: string): string {
  return JSON.stringify(text)
}

/** No grant has the fence 0. */
const noFence = 0

/** The values of `mayTakeOver`. */
export function takeOverValues(takeOver: TakeOver | undefined): readonly unknown[] {
  if (takeOver === undefined) return [null, null]
  return takeOver === 'none' ? [noFence, null] : [takeOver.fence, takeOver.claimId]
}
