/** Whether the background work is done: by loop, over all processes. */
import type { Overview } from 'latchkey/admin'

type Worker = Overview['workers'][number]

/** The sweeper has a minute; two without a turn mean that nobody does this work. */
const silentAfterMs = 120_000

export interface LoopState {
  readonly loop: string
  /** Since the last turn in any process. Undefined: none was ever seen. */
  readonly lastTurnMs: number | undefined
  readonly isSilent: boolean
  /** The process that did it last. */
  readonly process: string | undefined
}

export function loopStates(workers: readonly Worker[]): readonly LoopState[] {
  const names = new Set(['sweeper', ...workers.map(({ loop }) => loop)])
  return [...names].map(loop =>
    stateOf(
      loop,
      workers.filter(worker => worker.loop === loop),
    ),
  )
}

function stateOf(loop: string, workers: readonly Worker[]): LoopState {
  const [last] = workers.toSorted((a, b) => sinceTurn(a) - sinceTurn(b))
  const lastTurnMs = last === undefined || sinceTurn(last) === Infinity ? undefined : sinceTurn(last)
  const isSilent = (lastTurnMs ?? Infinity) > silentAfterMs
  return { loop, lastTurnMs, isSilent, process: last?.process }
}

/** What the process said was true when it was written. */
function sinceTurn({ lastTurnAgoMs, seenAgoMs }: Worker): number {
  return lastTurnAgoMs === undefined ? Infinity : lastTurnAgoMs + seenAgoMs
}
