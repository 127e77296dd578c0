/** Page after page of a list, up to a limit. */
import type { Page, Read } from 'latchkey/admin'
import { found } from './answers.ts'

export interface Listed<T> {
  readonly items: readonly T[]
  /** The list was cut: by its limit, or because the store took too long. */
  readonly more: boolean
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
    partial ||= page.partial
    // A server says null where it has none.
    after = page.next ?? undefined
  } while (after !== undefined && items.length < limit)
  return { items, more: partial || after !== undefined }
}
