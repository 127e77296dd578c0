/** Delivers the outbox, one lane at a time; each of several processes has another lane. */
import type { Internals } from '../engine/latchkey.ts'
import { createRelay, type RelayOptions } from '../outbox/relay.ts'
import { isObserved } from '../ports/telemetry.ts'
import { atMostEvery } from './at-most-every.ts'
import type { LoopOptions } from './loop.ts'

export interface RelayTurnOptions<Tx>
  extends Pick<Internals<Tx>, 'clock' | 'telemetry'>, Omit<RelayOptions, 'clock' | 'telemetry'> {}

export function relayTurn<Tx>(options: RelayTurnOptions<Tx>): LoopOptions['turn'] {
  const relay = createRelay(options)
  const observeLag = atMostEvery(options, () => observe(options))
  return async signal => {
    await observeLag()
    const turn = await relay.relayOnce(signal)
    if (turn.kind === 'idle') return 'idle'
    if (turn.kind === 'lease-lost') return 'more'
    // Another lane may be waiting. After a lane in which nothing moved the loop pauses first.
    return turn.delivered + turn.failed + turn.parked + turn.held > 0 ? 'more' : 'idle'
  }
}

async function observe<Tx>({ outbox, telemetry }: RelayTurnOptions<Tx>): Promise<void> {
  if (!isObserved(telemetry)) return
  const { oldestMs, waiting, heldBack, parked } = await outbox.lag()
  telemetry.observe('outbox.oldest_age', oldestMs, {})
  telemetry.observe('outbox.waiting', waiting, {})
  telemetry.observe('outbox.held_back', heldBack, {})
  telemetry.observe('outbox.parked', parked, {})
}
