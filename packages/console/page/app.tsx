/** The frame around the screens: who looks, where they may go, and what is counted right now. */
import { useEffect, useRef } from 'preact/hooks'
import type { Overview, Session } from 'latchkey/admin'
import { type Polled, usePoll } from './api/poll.ts'
import { Key } from './key/key.tsx'
import { LiveRegion } from './parts/announce.tsx'
import { useKeptFocus } from './parts/kept-focus.ts'
import { ProblemNote } from './parts/problem.tsx'
import { hrefOf, replaceRoute, type Route, useRoute } from './parts/route.ts'
import { SessionContext } from './parts/session.ts'
import { Shortcuts } from './parts/shortcuts.tsx'
import { Audit } from './screens/audit.tsx'
import { Find } from './screens/find.tsx'
import { Now } from './screens/now.tsx'
import { Operations } from './screens/operations.tsx'
import { Outbox } from './screens/outbox.tsx'
import { Proposals } from './screens/proposals.tsx'
import { Workers } from './screens/workers.tsx'
import { Queue } from './work/queue.tsx'

const screens: readonly (readonly [screen: string, title: string])[] = [
  ['now', 'Now'],
  ['unknown', 'Unknown'],
  ['parked', 'Parked'],
  ['outbox', 'Outbox'],
  ['proposals', 'Proposals'],
  ['find', 'Find'],
  ['operations', 'Operations'],
  ['workers', 'Workers'],
  ['audit', 'Audit'],
]

export function App() {
  const session = usePoll<Session>('session', { everyMs: 60_000 })
  const overview = usePoll<Overview>(session.value === undefined ? undefined : 'overview', { everyMs: 5_000 })
  const route = useRoute()
  useHome(route, overview)
  return (
    <SessionContext.Provider value={session.value}>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Header session={session.value} overview={overview.value} screen={route.screen} />
      <main id="main" tabIndex={-1}>
        {session.value === undefined || route.screen === '' ? (
          <Waiting session={session} />
        ) : (
          <Screen route={route} overview={overview} key={`${route.screen} ${route.id}`} />
        )}
      </main>
      <LiveRegion />
    </SessionContext.Provider>
  )
}

/** Where an address without a screen leads is decided once: what is counted later changes no screen under its reader. */
function useHome({ screen }: Route, { value, problem }: Polled<Overview>): void {
  const isKnown = value !== undefined || problem !== undefined
  useEffect(() => {
    if (screen === '' && isKnown) replaceRoute(hrefOf((value?.unknown.count ?? 0) > 0 ? 'unknown' : 'now'))
  }, [screen, isKnown])
}

/** The part after the # is the screen: the browser must not take it for an anchor. */
function skip(event: Event): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('#main')?.focus()
}

function Waiting({ session }: { session: Polled<Session> }) {
  return (
    <>
      <h1>Latchkey</h1>
      {session.problem === undefined ? <p>Loading…</p> : <ProblemNote problem={session.problem} />}
    </>
  )
}

interface HeaderProps {
  readonly session: Session | undefined
  readonly overview: Overview | undefined
  readonly screen: string
}

function Header({ session, overview, screen }: HeaderProps) {
  const counts: Readonly<Record<string, number | undefined>> = {
    unknown: overview?.unknown.count,
    parked: overview?.parked.count,
    outbox: overview?.outbox?.parked,
  }
  return (
    <header class="top">
      <span class="brand">Latchkey</span>
      {session?.environment !== undefined && <span class="badge">{session.environment}</span>}
      <nav aria-label="Screens">
        <ul>
          {screens.map(([name, title]) => (
            <li key={name}>
              <a href={hrefOf(name)} {...(screen === name ? { 'aria-current': 'page' as const } : {})}>
                {title}
                {(counts[name] ?? 0) > 0 && <span class="count"> {counts[name]}</span>}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <span class="who">
        <Shortcuts /> {session?.name}
      </span>
    </header>
  )
}

function Screen({ route, overview }: { route: Route; overview: Polled<Overview> }) {
  const box = useRef<HTMLDivElement>(null)
  useKeptFocus(box)
  useEffect(() => {
    const heading = box.current?.querySelector('h1')
    document.title = `${heading?.textContent ?? 'Latchkey'} – Latchkey`
    // A screen with a field of its own has taken the focus already.
    if (!box.current?.contains(document.activeElement)) heading?.focus()
  }, [])
  return <div ref={box}>{screenOf(route, overview)}</div>
}

function screenOf(route: Route, overview: Polled<Overview>) {
  const seen = { overview: overview.value, overviewAtMs: overview.readAtMs }
  switch (route.screen) {
    case 'now':
      return <Now overview={overview} />
    case 'unknown':
    case 'parked':
      return <Queue kind={route.screen} route={route} {...seen} />
    case 'key':
      return <Key id={route.id} overview={overview.value} />
    case 'outbox':
      return <Outbox {...seen} />
    case 'proposals':
      return <Proposals />
    case 'find':
      return <Find />
    case 'operations':
      return <Operations />
    case 'workers':
      return <Workers />
    case 'audit':
      return <Audit route={route} />
    default:
      return (
        <>
          <h1 tabIndex={-1}>No such screen</h1>
          <p>
            <a href={hrefOf('now')}>Go to Now</a>
          </p>
        </>
      )
  }
}
