/**
 * Acknowledgements that are confirmed together. A connection keeps the order of what is sent on it, so the answer to one request proves that the
 * acknowledgements before it have arrived. To have each of them confirmed by itself took a seventh of a message's processor time.
 */
import type { Clock } from '../../ports/clock.ts'

/** Nothing waits for it but `stop`, which does not let it run out. At a few hundred messages per second, a group is full by then. */
const gatherMs = 250
/** While `stop` waits: for those that end together. */
const gatherAtStopMs = 20
/** Less than the unsettled messages that a consumer may have, so that none waits for a confirmation to begin. */
const togetherMax = 32

export interface ConfirmOptions {
  readonly clock: Pick<Clock, 'after'>
  /** Aborted when `stop` begins. */
  readonly stopping: AbortSignal
  /** On the connection of the acknowledgements. */
  readonly request: () => Promise<unknown>
}

interface Group {
  readonly confirmed: Promise<unknown>
  readonly close: () => void
  size: number
}

/** What is returned resolves when a request that was sent after the call is answered. */
export function confirmTogether({ clock, stopping, request }: ConfirmOptions): () => Promise<unknown> {
  let group: Group | undefined
  stopping.addEventListener('abort', () => group?.close(), { once: true })

  function openGroup(): Group {
    let closed = () => {}
    const confirmed = new Promise<void>(resolve => (closed = resolve)).then(request)
    const close = () => {
      group = undefined
      cancel()
      closed()
    }
    const cancel = clock.after(stopping.aborted ? gatherAtStopMs : gatherMs, close)
    return { confirmed, close, size: 0 }
  }

  return () => {
    const joined = (group ??= openGroup())
    joined.size += 1
    if (joined.size === togetherMax) joined.close()
    return joined.confirmed
  }
}
