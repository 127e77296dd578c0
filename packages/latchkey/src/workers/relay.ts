/** Delivers the outbox, one lane at a time; each of several processes has another lane. */
import type { Internals } from '../engine/latchkey.ts'
import { createRelay, type RelayOptions } from '../outbox/relay.ts'
import type { LoopOptions } from './loop.ts'

export interface RelayTurnOptions<Tx>
  extends Pick<Internals<Tx>, 'clock' | 'telemetry'>, Omit<RelayOptions, 'clock' | 'telemetry'> {}

export function relayTurn<Tx>(options: RelayTurnOptions<Tx>): LoopOptions['turn'] {
  const relay = createRelay(options)
  return async signal => {
    const turn = await relay.relayOnce(signal)
    if (turn.kind === 'idle') return 'idle'
    if (turn.kind === 'lease-lost') return 'more'
    // Another lane may be waiting. After a lane in which nothing moved the loop pauses first.
    return turn.delivered + turn.failed + turn.parked + turn.held > 0 ? 'more' : 'idle'
  }
}
