/** One row: what it is, what happened to it, and what may be done. */
import { useState } from 'preact/hooks'
import type { AdminKey, TimelineEntry } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { durationText } from '../parts/duration.ts'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf } from '../parts/route.ts'
import { RowStates } from '../parts/state.tsx'
import { Age, Moment } from '../parts/time.tsx'
import { ActDialog, type RowActName } from './act-dialog.tsx'
import { Question } from './question.tsx'
import { RevealDialog } from './reveal-dialog.tsx'
import { Timeline } from './timeline.tsx'

export function Key({ id }: { id: string }) {
  const path = `keys/${encodeURIComponent(id)}`
  const key = usePoll<AdminKey>(path, { everyMs: 2_000 })
  const timeline = usePoll<readonly TimelineEntry[]>(`${path}/timeline`, { everyMs: 2_000 })
  const refresh = () => {
    key.refresh()
    timeline.refresh()
  }
  const row = key.value
  return (
    <>
      <p>
        <a href={hrefOf(row?.parked === true ? 'parked' : 'unknown')}>
          ◂ {row?.parked === true ? 'Parked' : 'Unknown'}
        </a>
      </p>
      <h1 tabIndex={-1}>{row === undefined ? `Key ${id.slice(0, 8)}` : `${row.operation} · ${row.scope}`}</h1>
      <ProblemNote problem={key.problem} />
      {row !== undefined && (
        <>
          <Facts row={row} readAtMs={key.readAtMs} />
          <Acts row={row} onDone={refresh} />
          <Timeline entries={timeline.value} problem={timeline.problem} />
          <Question row={row} entries={timeline.value ?? []} onDone={refresh} />
        </>
      )}
    </>
  )
}

function Facts({ row, readAtMs }: { row: AdminKey; readAtMs: number }) {
  return (
    <dl class="facts">
      <Fact name="State">
        <RowStates row={row} />{' '}
        {row.waitsForMs !== undefined && (
          <>
            for <Age ageMs={row.waitsForMs} readAtMs={readAtMs} />
          </>
        )}
      </Fact>
      {row.description !== undefined && <Fact name="What">{row.description}</Fact>}
      {row.cause !== undefined && <Fact name="Cause">{row.cause}</Fact>}
      <Fact name="Id">
        <code>{row.id}</code>
      </Fact>
      <Fact name="Fence">{row.fence}</Fact>
      <Fact name="Recovery">{row.recovery}</Fact>
      {row.definitionVersion !== undefined && (
        <Fact name="Needs">version {row.definitionVersion} of its definition</Fact>
      )}
      <Fact name="Attempts">
        {row.attempts}, crashes {row.crashes}
      </Fact>
      {row.openEffect !== undefined && (
        <Fact name="Downstream key">
          <code>{row.openEffect.downstreamKey}</code>
        </Fact>
      )}
      {row.references.length > 0 && <Fact name="References">{row.references.map(({ text }) => text).join(', ')}</Fact>}
      {row.quarantineLeftMs !== undefined && (
        <Fact name="Quarantine">
          {row.quarantineLeftMs > 0 ? `${durationText(row.quarantineLeftMs)} left` : 'over'}
        </Fact>
      )}
      {row.owner !== undefined && <Fact name="Owner">{row.owner}</Fact>}
      {row.note !== undefined && <Fact name="Note">{row.note}</Fact>}
      <Fact name="Client key">not stored, only its hash</Fact>
      <Fact name="Created">
        <Moment atMs={row.createdAtMs} />
      </Fact>
      <Fact name="Expires">
        <Moment atMs={row.expiresAtMs} />
      </Fact>
    </dl>
  )
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
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
