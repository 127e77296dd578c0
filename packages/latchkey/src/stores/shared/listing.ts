/** Pages of rows by id: a store reads one row more than the page has, to learn whether there is another page. */
import type { KeyRecord, Page } from '../../ports/store.ts'

const listLimitMax = 1_000

export function pageSize(limit: number): number {
  return Math.max(1, Math.min(limit, listLimitMax))
}

/** `records`: up to `size + 1`, ordered by id. */
export function pageOf(records: readonly KeyRecord[], size: number): Page {
  const page = records.slice(0, size)
  return { records: page, next: records.length > size ? page.at(-1)?.id : undefined }
}
