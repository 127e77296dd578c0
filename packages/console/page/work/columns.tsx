/** The columns of the two queues: what is unknown, and what was given up. */
import type { ComponentChildren } from 'preact'
import type { AdminRow } from 'latchkey/admin'
import { Due } from '../parts/time.tsx'

export type QueueKind = 'unknown' | 'parked'

export interface Column {
  readonly head: string
  cell(row: AdminRow, readAtMs: number): ComponentChildren
}

const effect: Column = { head: 'effect', cell: ({ effect: name }) => name ?? '–' }
const what: Column = { head: 'what', cell: ({ description }) => description ?? '–' }
const scope: Column = { head: 'scope', cell: row => row.scope }
const owner: Column = { head: 'owner', cell: row => row.owner ?? '–' }

export const columns: Readonly<Record<QueueKind, readonly Column[]>> = {
  unknown: [
    effect,
    what,
    scope,
    { head: 'evidence', cell: ({ evidence }) => (evidence === 0 ? '–' : `${evidence} collected`) },
    {
      head: 'next look-up',
      cell: ({ nextLookUpInMs }, readAtMs) =>
        nextLookUpInMs === undefined ? 'none planned' : <Due inMs={nextLookUpInMs} readAtMs={readAtMs} />,
    },
    {
      head: 'quarantine',
      cell: ({ quarantineLeftMs = 0 }, readAtMs) =>
        quarantineLeftMs <= 0 ? (
          'over'
        ) : (
          <>
            over <Due inMs={quarantineLeftMs} readAtMs={readAtMs} />
          </>
        ),
    },
    owner,
  ],
  parked: [
    what,
    scope,
    { head: 'attempts', cell: ({ attempts }) => attempts },
    { head: 'crashes', cell: ({ crashes }) => crashes },
    { head: 'note', cell: ({ note }) => note ?? '–' },
    owner,
  ],
}
