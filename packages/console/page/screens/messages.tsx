/** Messages that no delivery succeeded for: send again or skip, one by one; or all of one cause by a plan. */
import type { ParkedMessageView } from 'latchkey/admin'
import type { ReasonedAct } from '../parts/reason-dialog.tsx'
import { useSession } from '../parts/session.ts'
import { Moment } from '../parts/time.tsx'

interface MessagesProps {
  readonly items: readonly ParkedMessageView[]
  onAct(act: ReasonedAct): void
  /** All of these at once. */
  onPlan(positions: readonly string[]): void
}

export function Messages({ items, onAct, onPlan }: MessagesProps) {
  const { may } = useSession()
  return (
    <>
      {may('bulk') && may('redrive') && <Causes items={items} onPlan={onPlan} />}
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
    </>
  )
}

/** What failed for one cause is sent again when that is repaired. */
function Causes({ items, onPlan }: Pick<MessagesProps, 'items' | 'onPlan'>) {
  const causes = [...new Set(items.map(({ cause }) => cause))]
  return (
    <p class="bar">
      {causes.map(cause => {
        const same = items.filter(message => message.cause === cause)
        return (
          <button key={cause} type="button" onClick={() => onPlan(same.map(({ position }) => position))}>
            Send all {same.length} of {cause} again…
          </button>
        )
      })}
    </p>
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
