/**
 * Acknowledgements that are confirmed together. A connection keeps the order of what is sent on it, so the answer to one request proves that the
 * acknowledgements before it have arrived. To have each of them confirmed by itself took a seventh of a message's processor time.
 */
import type { Clock } from '../../ports/clock.ts'

/** Only `stop` waits for it. */
const gatherMs = 20
/** Less than the unsettled messages that a consumer may have, so that none waits for a confirmation to begin. */
const togetherMax = 32

interface Group {
  readonly confirmed: Promise<unknown>
  readonly close: () => void
  size: number
}

/** `request`: on the connection of the acknowledgements. What is returned resolves when one that was sent after the call is answered. */
export function confirmTogether(clock: Pick<Clock, 'after'>, request: () => Promise<unknown>): () => Promise<unknown> {
  let group: Group | undefined

  function openGroup(): Group {
    let closed = () => {}
    const confirmed = new Promise<void>(resolve => (closed = resolve)).then(request)
    const close = () => {
      group = undefined
      cancel()
      closed()
    }
    const cancel = clock.after(gatherMs, close)
    return { confirmed, close, size: 0 }
  }

  return () => {
    const joined = (group ??= openGroup())
    joined.size += 1
    if (joined.size === togetherMax) joined.close()
    return joined.confirmed
  }
}
