/** Delivers the outbox, a lane at a time; with several processes each has another lane. */
import { faultPoint } from '../engine/store/call.ts'
import type { Internals } from '../engine/latchkey.ts'
import { createRelay, type RelayOptions } from '../outbox/relay.ts'
import type { LoopOptions } from './loop.ts'

export interface RelayTurnOptions<Tx>
  extends Pick<Internals<Tx>, 'clock' | 'telemetry'>, Omit<RelayOptions, 'faultPoint' | 'clock' | 'telemetry'> {}

export function relayTurn<Tx>(options: RelayTurnOptions<Tx>): LoopOptions['turn'] {
  const relay = createRelay({ ...options, faultPoint })
  return async signal => {
    const turn = await relay.relayOnce(signal)
    if (turn.kind === 'idle') return 'idle'
    if (turn.kind === 'lease-lost') return 'more'
    // Another lane may wait. A lane in which nothing moved is no reason to look at once.
    return turn.delivered + turn.failed + turn.parked + turn.held > 0 ? 'more' : 'idle'
  }
}
