/** Is anything unsafe or stuck? */
import type { Overview } from 'latchkey/admin'
import { useState } from 'preact/hooks'
import { useHold, type Polled } from '../api/poll.ts'
import { loopStates } from '../api/worker-health.ts'
import { durationText } from '../parts/duration.ts'
import { Silent } from '../parts/life.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf } from '../parts/route.ts'
import { useSession } from '../parts/session.ts'
import { Age } from '../parts/time.tsx'
import { Rates } from './rates.tsx'

/** A sweeper has a minute for a lease that is over, and no relay pauses longer. */
const lateMs = 60_000

export function Now({ overview: { value, problem, readAtMs } }: { overview: Polled<Overview> }) {
  const [isPaused, setIsPaused] = useState(false)
  useHold(isPaused)
  return (
    <>
      <h1 tabIndex={-1}>Now</h1>
      <ProblemNote problem={problem} />
      {value !== undefined && <Verdict overview={value} readAtMs={readAtMs} />}
      {value !== undefined && <Tiles overview={value} readAtMs={readAtMs} />}
      {value?.partial === true && <p class="note">Partial: not everything was counted in time.</p>}
      {value !== undefined && <Rates rates={value.rates} />}
      <p class="bar">
        <span>
          Refreshed <Age ageMs={0} readAtMs={readAtMs} after=" ago" />
        </span>
        <button type="button" class="quiet" onClick={() => setIsPaused(!isPaused)}>
          {isPaused ? 'Paused: resume' : 'Pause'}
        </button>
      </p>
    </>
  )
}

/** A dead sweeper comes first: without it, every count may be a lie. */
function Verdict({ overview, readAtMs }: { overview: Overview; readAtMs: number }) {
  const silent = loopStates(overview.workers).filter(({ isSilent }) => isSilent)
  const { unknown } = overview
  if (silent.length > 0)
    return (
      <p class="verdict">
        <Silent states={silent} so="The counts below mean nothing until it runs again." />
      </p>
    )
  if (unknown.count > 0) {
    return (
      <p class="verdict note note-bad">
        <strong>
          ! {unknown.count} {unknown.count === 1 ? 'outcome' : 'outcomes'} unknown
        </strong>
        , oldest <Age ageMs={unknown.oldestMs} readAtMs={readAtMs} /> <a href={hrefOf('unknown')}>Open the queue →</a>
      </p>
    )
  }
  if (overview.partial) {
    return <p class="verdict note">No unknown outcome was counted in the time that a count has: there may be some.</p>
  }
  return (
    <p class="verdict note note-good">
      <strong>✓ No outcome is unknown</strong>, and the workers run.
    </p>
  )
}

interface TileProps {
  readonly title: string
  readonly href: string
  readonly isBad: boolean
  readonly figure: preact.ComponentChildren
  readonly children?: preact.ComponentChildren
}

function Tile({ title, href, isBad, figure, children }: TileProps) {
  return (
    <li class={isBad ? 'tile tile-bad' : 'tile'}>
      <a href={href}>
        <span class="title">{title}</span>
        <span class="figure">
          {isBad && <span aria-label="needs attention">! </span>}
          {figure}
        </span>
        <span class="more">{children}</span>
      </a>
    </li>
  )
}

function Tiles({ overview, readAtMs }: { overview: Overview; readAtMs: number }) {
  const { unknown, parked, overdue, outbox, inbox, workers } = overview
  const loops = loopStates(workers)
  const { lacks } = useSession()
  // Messages have no scope: they are not counted for a person who sees some scopes only.
  const whyNoOutbox = lacks('outbox') ? 'this store has none' : 'not counted for your scopes'
  return (
    <ul class="tiles">
      <Tile title="Unknown" href={hrefOf('unknown')} isBad={unknown.count > 0} figure={unknown.count}>
        <Oldest {...unknown} readAtMs={readAtMs} />
      </Tile>
      <Tile title="Parked" href={hrefOf('parked')} isBad={parked.count > 0} figure={parked.count}>
        <Oldest {...parked} readAtMs={readAtMs} />
      </Tile>
      <Tile title="Overdue leases" href={hrefOf('workers')} isBad={overdue.oldestMs > lateMs} figure={overdue.count}>
        <Oldest {...overdue} readAtMs={readAtMs} />
      </Tile>
      <Tile
        title="Outbox"
        href={hrefOf('outbox')}
        isBad={outbox !== undefined && (outbox.parked > 0 || outbox.oldestMs > lateMs)}
        figure={outbox === undefined ? '–' : outbox.waiting}
      >
        {outbox === undefined ? whyNoOutbox : `${outbox.parked} parked, oldest ${durationText(outbox.oldestMs)}`}
        {inbox !== undefined && inbox.waiting > 0 && `, inbox: ${inbox.waiting} parked`}
      </Tile>
      <Tile
        title="Workers"
        href={hrefOf('workers')}
        isBad={loops.some(({ isSilent }) => isSilent)}
        figure={loops.filter(({ isSilent }) => !isSilent).length}
      >
        {loops.map(({ loop, lastTurnMs, isSilent }) => (
          <span key={loop} class={isSilent ? 'bad' : ''}>
            {loop} {lastTurnMs === undefined ? 'never' : <Age ageMs={lastTurnMs} readAtMs={readAtMs} />}{' '}
          </span>
        ))}
      </Tile>
    </ul>
  )
}

function Oldest({ count, oldestMs, readAtMs }: { count: number; oldestMs: number; readAtMs: number }) {
  if (count === 0) return <>none</>
  return (
    <>
      oldest <Age ageMs={oldestMs} readAtMs={readAtMs} />
    </>
  )
}
