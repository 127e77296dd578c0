/** One row: what it is, what happened to it, and what may be done. */
import { useEffect, useState } from 'preact/hooks'
import type { AdminKey, Overview, TimelineEntry } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { announce } from '../parts/announce.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf } from '../parts/route.ts'
import { ActDialog, type RowActName } from './act-dialog.tsx'
import { Facts } from './facts.tsx'
import { Question } from './question.tsx'
import { RevealDialog } from './reveal-dialog.tsx'
import { Timeline } from './timeline.tsx'

export function Key({ id, overview }: { id: string; overview: Overview | undefined }) {
  const path = `keys/${encodeURIComponent(id)}`
  const key = usePoll<AdminKey>(path, { everyMs: 2_000 })
  const timeline = usePoll<readonly TimelineEntry[]>(`${path}/timeline`, { everyMs: 2_000 })
  const refresh = () => {
    key.refresh()
    timeline.refresh()
  }
  const row = key.value
  const isGone = row !== undefined && key.problem?.code === 'not-found'
  return (
    <>
      <p>
        <a href={hrefOf(row?.parked === true ? 'parked' : 'unknown')}>
          ◂ {row?.parked === true ? 'Parked' : 'Unknown'}
        </a>
      </p>
      <h1 tabIndex={-1}>{row === undefined ? `Key ${id.slice(0, 8)}` : `${row.operation} · ${row.scope}`}</h1>
      {isGone ? <GoneNote id={id} /> : <ProblemNote problem={key.problem} />}
      {row !== undefined && !isGone && (
        <>
          <Facts row={row} readAtMs={key.readAtMs} overview={overview} />
          <Acts row={row} onDone={refresh} />
          <Timeline entries={timeline.value} problem={timeline.problem} />
          {/* Not before the story: the form tells what it has gained since the person began. */}
          {(timeline.value !== undefined || timeline.problem !== undefined) && (
            <Question row={row} entries={timeline.value ?? []} onDone={refresh} />
          )}
        </>
      )}
    </>
  )
}

/** What was shown is over: no act may be offered on it. */
function GoneNote({ id }: { id: string }) {
  useEffect(() => announce('The row is gone'), [])
  return (
    <p class="note">
      <strong>The row is gone:</strong> it was forgotten, or it has expired.{' '}
      <a href={hrefOf('audit', '', { id })}>What people did to it</a>
    </p>
  )
}

const acts: readonly (readonly [RowActName, string])[] = [
  ['take', 'Take'],
  ['look_up', 'Look up at the provider now'],
  ['note', 'Note'],
  ['park', 'Park'],
  ['resume', 'Resume'],
  ['forget', 'Forget'],
]

function Acts({ row, onDone }: { row: AdminKey; onDone: () => void }) {
  const [open, setOpen] = useState<RowActName>()
  const [revealed, setRevealed] = useState<'input' | 'outcome'>()
  const offered = acts.filter(([right]) => row.may.includes(right))
  const mayReveal = row.may.includes('reveal')
  function close(isDone: boolean): void {
    setOpen(undefined)
    if (isDone) onDone()
  }
  return (
    <div class="bar" role="toolbar" aria-label="Acts on this row">
      {offered.map(([right, text]) => (
        <button key={right} type="button" onClick={() => setOpen(right)}>
          {text}…
        </button>
      ))}
      {mayReveal && row.inputBytes !== undefined && (
        <button type="button" onClick={() => setRevealed('input')}>
          Reveal input ({row.inputBytes} B)…
        </button>
      )}
      {mayReveal && row.outcomeBytes !== undefined && (
        <button type="button" onClick={() => setRevealed('outcome')}>
          Reveal outcome ({row.outcomeBytes} B)…
        </button>
      )}
      {row.mayNot.length > 0 && (
        <details class="why">
          <summary>Not offered, and why</summary>
          <ul>
            {row.mayNot.map(({ right, why }) => (
              <li key={right}>
                <strong>{right}</strong>: {why}
              </li>
            ))}
          </ul>
        </details>
      )}
      {open !== undefined && <ActDialog name={open} row={row} onClose={close} />}
      {revealed !== undefined && <RevealDialog what={revealed} row={row} onClose={() => setRevealed(undefined)} />}
    </div>
  )
}
