import { useEffect, useState } from 'preact/hooks'
import type { AuditLineOfOperators, Page } from 'latchkey/admin'
import { pathWith, read } from '../api/request.ts'
import { hrefOf } from '../parts/route.ts'
import { Moment } from '../parts/time.tsx'

/** An empty queue shows that it was not always empty: who answered last. */
export function LastAnswer() {
  const [last, setLast] = useState<AuditLineOfOperators>()
  useEffect(() => {
    const ended = new AbortController()
    void read<Page<AuditLineOfOperators>>(pathWith('audit', { limit: 100 }), { signal: ended.signal }).then(answer => {
      if (answer.kind !== 'ok' || ended.signal.aborted) return
      setLast(answer.value.items.find(({ act, refused }) => act.startsWith('settle') && refused === undefined))
    })
    return () => ended.abort()
  }, [])
  if (last === undefined) return <p>No operator has answered one yet.</p>
  return (
    <p>
      The last answer of an operator: {last.by}, <Moment atMs={last.atMs} />
      {last.id !== undefined && (
        <>
          , <a href={hrefOf('key', last.id)}>{last.id.slice(0, 8)}</a>
        </>
      )}
      .
    </p>
  )
}
