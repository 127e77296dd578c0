/** Tells the store, every ten seconds, how each loop of this process is: so that people see the fleet, and a loop that is silent. */
import type { Clock } from '../ports/clock.ts'
import { errorText } from '../ports/errors.ts'
import type { AdminRecords, WorkerBeat } from '../ports/faculties/admin.ts'
import { processName } from '../outbox/process-name.ts'
import type { LoopHealth } from './loop.ts'

const everyMs = 10_000
/** A message of an error may hold anything, and stands in a table: its beginning is enough to know it. */
const errorLengthMax = 200

export interface Beats {
  begin(): void
  end(): void
}

export interface BeatOptions {
  /** Undefined: the store has no place for them. */
  readonly admin: AdminRecords | undefined
  readonly clock: Clock
  readonly health: () => Readonly<Record<string, LoopHealth>>
  /** What a loop says beside its health, as JSON. */
  readonly detailOf: (loop: string) => string | undefined
}

export function workerBeats({ admin, clock, health, detailOf }: BeatOptions): Beats {
  const process = processName(clock)
  let cancel: (() => void) | undefined

  function beat(): void {
    cancel = clock.after(everyMs, beat)
    const beats = Object.entries(health()).map(([loop, of]) =>
      beatOf({ process, loop, detail: detailOf(loop) }, of, clock),
    )
    // A store that is away shows it by itself: the beat is missing.
    admin?.beat(beats).catch(() => {})
  }

  return {
    begin() {
      cancel?.()
      if (admin !== undefined) cancel = clock.after(0, beat)
    },
    end() {
      cancel?.()
      cancel = undefined
    },
  }
}

function beatOf(
  named: Pick<WorkerBeat, 'process' | 'loop' | 'detail'>,
  { lastTurnAtMs, lastError, turns, failures }: LoopHealth,
  clock: Clock,
): WorkerBeat {
  return {
    ...named,
    turns,
    failures,
    lastTurnAgoMs: lastTurnAtMs === undefined ? undefined : Math.max(0, clock.nowMs() - lastTurnAtMs),
    lastError: lastError === undefined ? undefined : errorText(lastError).slice(0, errorLengthMax),
  }
}
