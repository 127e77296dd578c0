/** Received messages that could not be handled: handle again, or discard. */
import type { ParkedInboxView } from 'latchkey/admin'
import type { ReasonedAct } from '../parts/reason-dialog.tsx'
import { hrefOf } from '../parts/route.ts'
import { useSession } from '../parts/session.ts'
import { Moment } from '../parts/time.tsx'

interface InboxProps {
  readonly items: readonly ParkedInboxView[]
  onAct(act: ReasonedAct): void
}

export function Inbox({ items, onAct }: InboxProps) {
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
