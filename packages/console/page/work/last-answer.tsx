import { useEffect, useState } from 'preact/hooks'
import type { AuditLineOfOperators, Page } from 'latchkey/admin'
import { pathWith, read } from '../api/request.ts'
import { hrefOf } from '../parts/route.ts'
import { Moment } from '../parts/time.tsx'

/** Entries that are looked through. */
const lookedMax = 100

type Looked =
  | { readonly kind: 'found'; readonly line: AuditLineOfOperators }
  | { readonly kind: 'never' }
  /** There are older entries, which are not looked through. */
  | { readonly kind: 'not-lately' }

/** An empty queue shows that it was not always empty: who answered last. */
export function LastAnswer() {
  const [looked, setLooked] = useState<Looked>()
  useEffect(() => {
    const ended = new AbortController()
    void read<Page<AuditLineOfOperators>>(pathWith('audit', { limit: lookedMax }), { signal: ended.signal }).then(
      answer => {
        if (answer.kind === 'ok' && !ended.signal.aborted) setLooked(lookThrough(answer.value))
      },
    )
    return () => ended.abort()
  }, [])
  switch (looked?.kind) {
    case undefined:
      return null
    case 'never':
      return <p>No operator has answered one yet.</p>
    case 'not-lately':
      return <p>None of the last {lookedMax} entries of the audit is an answer.</p>
    case 'found':
      return <Line line={looked.line} />
  }
}

function lookThrough({ items, next }: Page<AuditLineOfOperators>): Looked {
  const line = items.find(({ act, refused }) => act.startsWith('settle') && refused === undefined)
  if (line !== undefined) return { kind: 'found', line }
  return { kind: next === undefined ? 'never' : 'not-lately' }
}

function Line({ line: { by, atMs, id } }: { line: AuditLineOfOperators }) {
  return (
    <p>
      The last answer of an operator: {by}, <Moment atMs={atMs} />
      {id !== undefined && (
        <>
          , <a href={hrefOf('key', id)}>{id.slice(0, 8)}</a>
        </>
      )}
      .
    </p>
  )
}
