/** Page after page of a list, up to a limit. */
import type { Page, Read } from 'latchkey/admin'
import { CliError, exits } from '../program/exit.ts'
import { found } from './answers.ts'

export interface Listed<T> {
  readonly items: readonly T[]
  /** The list was cut by its limit. */
  readonly more: boolean
  /** The store took too long: nobody knows what is missing. */
  readonly partial: boolean
}

const limitDefault = 100
const pageMax = 100

export async function pagesOf<T>(
  read: (page: { readonly limit: number; readonly after?: string }) => Promise<Read<Page<T>>>,
  limit: number = limitDefault,
): Promise<Listed<T>> {
  const items: T[] = []
  let after: string | undefined
  let partial = false
  do {
    const wanted = Math.min(pageMax, limit - items.length)
    const page = found(await read({ limit: wanted, ...(after === undefined ? {} : { after }) }), 'list')
    items.push(...page.items)
    // A server says null where it has none.
    after = page.next ?? undefined
    // With a cursor it goes on; without one it was cut off.
    partial = page.partial && after === undefined
  } while (after !== undefined && items.length < limit)
  return { items, more: after !== undefined, partial }
}

/** Said beside a list. An empty one that was cut off is not an empty one. */
export function cutText({ more, partial }: Pick<Listed<unknown>, 'more' | 'partial'>): string | undefined {
  if (partial) return 'the store took too long: there may be more than is shown'
  return more ? 'there are more: raise --limit, or filter' : undefined
}

/** Whoever asks whether something is too old must not hear no from a list that nobody could read. */
export function undecided(what: string): CliError {
  return new CliError(
    exits.unreachable,
    'partial',
    `${what}: the store took too long, so nobody knows whether something is older: try again, or look at latchkey doctor`,
  )
}
