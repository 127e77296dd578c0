/** The rows of a group: the first page again and again, the others as they are asked for, and then now and then. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { AdminRow, Page } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { pathWith, type Problem, type Query, read } from '../api/request.ts'
import { holdList } from './held-list.ts'

/** As many as the API gives at once. */
const pageRows = 100
/** More rows than anybody reads, and as many as a plan can hold. */
const rowsMax = 1_000
/** Up to nine requests: less often than the first page. */
const laterEveryMs = 10_000

interface Later {
  readonly path: string
  readonly pages: readonly Page<AdminRow>[]
  readonly readAtMs: number
}

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
  const [more, setMore] = useState<Later>()
  const isReadingLater = useRef(false)
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
  // What was settled meanwhile must not stay in the list. `first` is not read while rows are selected, so that these pages stand still, too.
  useEffect(() => {
    const isDue = more?.path === path && performance.now() - more.readAtMs >= laterEveryMs
    if (!isDue || isReadingLater.current) return
    isReadingLater.current = true
    void readLater(query, { after: first.value?.next, count: more.pages.length }).then(found => {
      isReadingLater.current = false
      // Not where somebody has asked for more meanwhile.
      if (found !== undefined)
        setMore(now => (now === more ? { path, pages: found, readAtMs: performance.now() } : now))
    })
  }, [first.readAtMs])
  async function showMore(): Promise<void> {
    if (last?.next === undefined) return
    const answer = await read<Page<AdminRow>>(pathWith('work', { ...query, limit: pageRows, cursor: last.next }))
    if (answer.kind !== 'ok') return first.refresh()
    ids.current = { path, shown: undefined }
    setMore({ path, pages: [...pages, answer.value], readAtMs: more?.readAtMs ?? performance.now() })
  }
  function showFresh(): void {
    ids.current = { path, shown: undefined }
    first.refresh()
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

interface Wanted {
  /** Where the first page ends. Undefined: it is the last one now. */
  readonly after: string | undefined
  readonly count: number
}

/** Undefined: a page could not be read, and what is shown stays. */
async function readLater(query: Query, { after, count }: Wanted): Promise<Page<AdminRow>[] | undefined> {
  const pages: Page<AdminRow>[] = []
  for (let cursor = after; cursor !== undefined && pages.length < count; cursor = pages.at(-1)?.next) {
    const path = pathWith('work', { ...query, limit: pageRows, cursor })
    const answer = await read<Page<AdminRow>>(path)
    if (answer.kind !== 'ok') return undefined
    pages.push(answer.value)
  }
  return pages
}
