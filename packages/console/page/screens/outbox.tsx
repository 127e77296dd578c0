/** What is not delivered, and what was delivered here and could not be handled? */
import { useState } from 'preact/hooks'
import type { Admin, Lanes, Overview, Page, ParkedInboxView, ParkedMessageView, Read } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { durationText } from '../parts/duration.ts'
import { Life } from '../parts/life.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf } from '../parts/route.ts'
import { useSession } from '../parts/session.ts'
import { Moment } from '../parts/time.tsx'
import { LaneTable } from './lanes.tsx'
import { ReasonDialog, type ReasonedAct } from '../parts/reason-dialog.tsx'

type Found<T> = T extends Promise<Read<infer Value>> ? Value : never
type OutboxView = Found<ReturnType<Admin['outbox']>>

interface OutboxProps {
  readonly overview: Overview | undefined
  readonly overviewAtMs: number
}

export function Outbox({ overview, overviewAtMs }: OutboxProps) {
  const outbox = usePoll<OutboxView>('outbox', { everyMs: 5_000 })
  const lanes = usePoll<Lanes>('outbox/lanes', { everyMs: 5_000 })
  const messages = usePoll<Page<ParkedMessageView>>('outbox/parked?limit=100', { everyMs: 5_000 })
  const inbox = usePoll<Page<ParkedInboxView>>('inbox/parked?limit=100', { everyMs: 5_000 })
  const [act, setAct] = useState<ReasonedAct>()
  function close(isDone: boolean): void {
    setAct(undefined)
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
        <Messages items={messages.value.items} onAct={setAct} />
      )}
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
      {act !== undefined && <ReasonDialog act={act} onClose={close} />}
    </>
  )
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

interface ListProps<T> {
  readonly items: readonly T[]
  onAct(act: ReasonedAct): void
}

function Messages({ items, onAct }: ListProps<ParkedMessageView>) {
  const { may } = useSession()
  return (
    <div class="scroll" role="region" aria-labelledby="outbox-parked" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {['message', 'topic', 'aggregate', 'lane', 'attempts', 'cause', 'last error', 'parked', ''].map(head => (
              <th scope="col" key={head}>
                {head === '' ? <span class="hidden">acts</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map(message => (
            <tr key={message.position}>
              <td>{message.position}</td>
              <td>{message.topic}</td>
              <td>{message.aggregate ?? '–'}</td>
              <td>{message.lane}</td>
              <td>{message.attempts}</td>
              <td>{message.cause}</td>
              <td class="long">{message.history.at(-1)?.error ?? '–'}</td>
              <td>
                <Moment atMs={message.parkedAtMs} />
              </td>
              <td>
                <span class="acts">
                  {may('redrive') && (
                    <button type="button" onClick={() => onAct(redriveAct(message))}>
                      Send again…
                    </button>
                  )}
                  {may('skip') && (
                    <button type="button" onClick={() => onAct(skipAct(message))}>
                      Skip…
                    </button>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function redriveAct({ position }: ParkedMessageView): ReasonedAct {
  return {
    title: `Send message ${position} again`,
    does: 'The relay delivers it next, and then what waits behind it.',
    path: `outbox/parked/${encodeURIComponent(position)}/redrive`,
  }
}

function skipAct({ position, topic, aggregate, dedupId }: ParkedMessageView): ReasonedAct {
  const of = aggregate === undefined ? '' : ` of ${aggregate}`
  return {
    title: `Skip message ${position}`,
    does: `The consumer of ${topic} will miss this message${of}, dedup id ${dedupId}: it is never delivered, and the consumer is not notified. What waits behind it is delivered. Say in the reason who knows.`,
    path: `outbox/parked/${encodeURIComponent(position)}/skip`,
  }
}

function Inbox({ items, onAct }: ListProps<ParkedInboxView>) {
  const { may } = useSession()
  return (
    <div class="scroll" role="region" aria-labelledby="inbox-parked" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {['message', 'consumer', 'operation', 'source', 'cause', 'attempts', 'parked', 'row', ''].map(head => (
              <th scope="col" key={head}>
                {head === '' ? <span class="hidden">acts</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map(message => (
            <tr key={message.id}>
              <td>{message.id.slice(0, 12)}</td>
              <td>{message.consumer}</td>
              <td>{message.operation}</td>
              <td>{message.source}</td>
              <td>{message.cause}</td>
              <td>{message.attempts}</td>
              <td>
                {message.times} × <Moment atMs={message.parkedAtMs} />
              </td>
              <td>
                {message.rowId === undefined ? (
                  '–'
                ) : (
                  <a href={hrefOf('key', message.rowId)}>{message.rowId.slice(0, 8)}</a>
                )}
              </td>
              <td>
                <span class="acts">
                  {may('redrive') && !message.redriving && (
                    <button type="button" onClick={() => onAct(inboxAct(message.id, 'redrive'))}>
                      Handle again…
                    </button>
                  )}
                  {may('redrive') && (
                    <button type="button" onClick={() => onAct(inboxAct(message.id, 'discard'))}>
                      Discard…
                    </button>
                  )}
                  {message.redriving && 'being handled again'}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function inboxAct(id: string, verb: 'redrive' | 'discard'): ReasonedAct {
  return {
    title: verb === 'redrive' ? 'Handle this message again' : 'Discard this message',
    does:
      verb === 'redrive'
        ? 'Its consumer gets it once more.'
        : 'It is never handled. What it asked for does not happen: say in the reason who knows.',
    path: `inbox/parked/${encodeURIComponent(id)}/${verb}`,
  }
}
