/** Which rows of a queue are selected. */
import { useMemo, useState } from 'preact/hooks'
import type { AdminRow } from 'latchkey/admin'
import { useHold } from '../api/poll.ts'
import { announce } from '../parts/announce.tsx'

export interface Selection {
  has(id: string): boolean
  set(rows: readonly AdminRow[], isSelected: boolean): void
}

/** Rows that are selected do not move: polling stands still. */
export function useSelection() {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  useHold(ids.size > 0)
  const selection: Selection = useMemo(
    () => ({
      has: id => ids.has(id),
      set(rows: readonly AdminRow[], isSelected) {
        setIds(before => {
          const next = new Set(before)
          for (const { id } of rows) {
            if (isSelected) next.add(id)
            else next.delete(id)
          }
          announce(`${next.size} selected`)
          return next
        })
      },
    }),
    [ids],
  )
  return { ids, selection, clear: () => setIds(new Set()) }
}
