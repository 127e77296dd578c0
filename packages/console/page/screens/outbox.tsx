/** What is not delivered, and what was delivered here and could not be handled? */
import { useState } from 'preact/hooks'
import type { Admin, Lanes, Overview, Page, ParkedInboxView, ParkedMessageView, Read } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { durationText } from '../parts/duration.ts'
import { Life } from '../parts/life.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { ReasonDialog, type ReasonedAct } from '../parts/reason-dialog.tsx'
import { PlanDialog } from '../work/plan-dialog.tsx'
import { Inbox } from './inbox.tsx'
import { LaneTable } from './lanes.tsx'
import { Messages } from './messages.tsx'

type Found<T> = T extends Promise<Read<infer Value>> ? Value : never
type OutboxView = Found<ReturnType<Admin['outbox']>>

/** As many as the API gives at once. */
const shownMax = 100

interface OutboxProps {
  readonly overview: Overview | undefined
  readonly overviewAtMs: number
}

export function Outbox({ overview, overviewAtMs }: OutboxProps) {
  const outbox = usePoll<OutboxView>('outbox', { everyMs: 5_000 })
  const lanes = usePoll<Lanes>('outbox/lanes', { everyMs: 5_000 })
  const messages = usePoll<Page<ParkedMessageView>>(`outbox/parked?limit=${shownMax}`, { everyMs: 5_000 })
  const inbox = usePoll<Page<ParkedInboxView>>(`inbox/parked?limit=${shownMax}`, { everyMs: 5_000 })
  const [act, setAct] = useState<ReasonedAct>()
  const [planned, setPlanned] = useState<readonly string[]>()
  function close(isDone: boolean): void {
    setAct(undefined)
    setPlanned(undefined)
    if (!isDone) return
    for (const each of [outbox, lanes, messages, inbox]) each.refresh()
  }
  return (
    <>
      <h1 tabIndex={-1}>Outbox and inbox</h1>
      <ProblemNote problem={outbox.problem} />
      {outbox.value !== undefined && <Waiting outbox={outbox.value} />}
      <ProblemNote problem={lanes.problem} />
      {lanes.value !== undefined && <LaneTable lanes={lanes.value} readAtMs={lanes.readAtMs} />}
      <h2 id="outbox-parked">Parked messages</h2>
      <ProblemNote problem={messages.problem} />
      {messages.value?.items.length === 0 && (
        <div class="empty">
          <p>
            <strong>No message is parked.</strong>{' '}
            <Life overview={overview} readAtMs={overviewAtMs} loops={['relay']} />
          </p>
        </div>
      )}
      {messages.value !== undefined && messages.value.items.length > 0 && (
        <Messages items={messages.value.items} onAct={setAct} onPlan={setPlanned} />
      )}
      <More page={messages.value} />
      <h2 id="inbox-parked">Parked in the inbox</h2>
      <ProblemNote problem={inbox.problem} />
      {inbox.value?.items.length === 0 && (
        <div class="empty">
          <p>
            <strong>No received message is parked.</strong> Consumers park what they cannot handle here.
          </p>
        </div>
      )}
      {inbox.value !== undefined && inbox.value.items.length > 0 && <Inbox items={inbox.value.items} onAct={setAct} />}
      <More page={inbox.value} />
      {act !== undefined && <ReasonDialog act={act} onClose={close} />}
      {planned !== undefined && <PlanDialog given={{ act: 'redrive', ids: planned }} onClose={close} />}
    </>
  )
}

/** A list that ends too early must not look complete. */
function More({ page }: { page: Page<unknown> | undefined }) {
  if (page?.next === undefined) return null
  return <p class="note">The first {shownMax} are shown. The next ones follow when these are dealt with.</p>
}

function Waiting({ outbox }: { outbox: OutboxView }) {
  return (
    <ul class="figures">
      <li>{outbox.waiting} waiting</li>
      <li>oldest {durationText(outbox.oldestMs)}</li>
      <li>{outbox.heldBack} held back by an open transaction</li>
      <li>{outbox.parked} parked</li>
    </ul>
  )
}
