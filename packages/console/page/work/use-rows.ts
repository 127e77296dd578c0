/** The rows of a group: the first page again and again, the others as they are asked for. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { AdminRow, Page } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { pathWith, type Problem, type Query, read } from '../api/request.ts'
import { holdList } from './held-list.ts'

/** As many as the API gives at once. */
const pageRows = 100
/** More rows than anybody reads, and as many as a plan can hold. */
const rowsMax = 1_000

export interface Rows {
  readonly shown: readonly AdminRow[]
  readonly fresh: number
  readonly hasMore: boolean
  readonly isPartial: boolean
  readonly isRead: boolean
  readonly readAtMs: number
  readonly problem: Problem | undefined
  showFresh(): void
  showMore(): void
}

export function useRows(query: Query, everyMs: number): Rows {
  const path = pathWith('work', { ...query, limit: pageRows })
  const first = usePoll<Page<AdminRow>>(path, { everyMs })
  const [more, setMore] = useState<{ readonly path: string; readonly pages: readonly Page<AdminRow>[] }>()
  const pages = more?.path === path ? more.pages : []
  const ids = useRef<{ path: string; shown: ReadonlySet<string> | undefined }>({ path, shown: undefined })
  if (ids.current.path !== path) ids.current = { path, shown: undefined }
  const later = pages.flatMap(({ items }) => items)
  const inFirst = new Set(first.value?.items.map(({ id }) => id))
  const all = [...(first.value?.items ?? []), ...later.filter(({ id }) => !inFirst.has(id))]
  const { shown, fresh } = holdList(ids.current.shown, all)
  useEffect(() => {
    ids.current = { path, shown: shown.length === 0 ? undefined : new Set(shown.map(({ id }) => id)) }
  })
  const last = pages.at(-1) ?? first.value
  async function showMore(): Promise<void> {
    if (last?.next === undefined) return
    const answer = await read<Page<AdminRow>>(pathWith('work', { ...query, limit: pageRows, cursor: last.next }))
    if (answer.kind !== 'ok') return first.refresh()
    ids.current = { path, shown: undefined }
    setMore({ path, pages: [...pages, answer.value] })
  }
  function showFresh(): void {
    ids.current = { path, shown: undefined }
    first.refresh()
    setMore(before => (before === undefined ? before : { ...before }))
  }
  return {
    shown,
    fresh,
    hasMore: last?.next !== undefined && all.length < rowsMax,
    isPartial: last?.partial ?? false,
    isRead: first.value !== undefined,
    readAtMs: first.readAtMs,
    problem: first.problem,
    showFresh,
    showMore: () => void showMore(),
  }
}
