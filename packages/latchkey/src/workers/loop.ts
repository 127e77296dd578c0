/**
 * The one shape of all background work: turn after turn, a pause when there is nothing to do, a longer one after a failure.
 * What a turn does is fenced in the store, so any number of loops of one kind may run in any number of processes.
 */
import { type Clock, sleep } from '../ports/clock.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { type Pauses, pauses } from './pauses.ts'
import { countedTurns, type Turns } from './turns.ts'

/** `more`: the batch was full, so the next turn follows at once. `idle`: nothing is left for now. */
export type TurnResult = 'more' | 'idle'

export interface LoopOptions {
  readonly name: string
  /** One bounded batch. The signal aborts when the turn is given up: it took too long, or the loop was stopped. */
  readonly turn: (signal: AbortSignal) => Promise<TurnResult>
  /** The pause after an idle turn, at most: jitter makes it shorter, never longer, so that "every 60 s" is a promise. */
  readonly idleMs: number
  /** The pause between two turns while there is more. Default 0. A reaper wants one: it must leave room for live traffic. */
  readonly pauseMs?: number
  /** The share of `idleMs` that chance may take away. Default 0.2: processes that started together drift apart. */
  readonly jitter?: number
  /** The pause after failures in a row: doubled from `firstMs` up to `maxMs`. Default 500 ms and 30 s. */
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number }
  /** A turn that takes longer is given up and counted as failed; the loop goes on. Default 60 s. */
  readonly turnMsMax?: number
  /** What turns have started and not awaited; `drain` waits for it too. */
  readonly outstanding?: () => Promise<unknown>
  /** Called when `drain` or `stop` begins: what outlasts a turn and need not be waited for ends now. */
  readonly ending?: (how: 'drain' | 'stop') => void
  readonly clock: Clock
  readonly telemetry: Telemetry
}

export interface LoopHealth {
  /** From `start` until the last turn has ended after `drain` or `stop`. */
  readonly running: boolean
  /** When a turn last ended, well or not. Wall time, for people. */
  readonly lastTurnAtMs: number | undefined
  /** Of the last turn, if it failed. */
  readonly lastError: unknown
  readonly turns: number
  readonly failures: number
}

export interface WorkerLoop {
  /** Keeps the process alive until `drain` or `stop`. Does nothing if it is running; begins anew after either. */
  start(): void
  /** A hint that there is work: ends an idle pause. Many hints are one turn, and a pause after a failure is kept. */
  wake(): void
  /** No new turn; waits for the running one, at most `timeoutMs` (default 10 s). `drained: false`: it is still running. */
  drain(options?: { timeoutMs?: number }): Promise<{ drained: boolean }>
  /** No new turn, and the running one is told to end and not waited for. */
  stop(): Promise<void>
  health(): LoopHealth
}

/** Enough to spread a fleet that starts at once; short, because a process that crashes often must still get its turns. */
const firstPauseMsMax = 1_000

interface Run {
  draining: boolean
  stopping: boolean
  /** The last turn has ended, or was given up. */
  looped: Promise<void>
  /** And nothing that it started is left. */
  ended: Promise<void>
}

export function workerLoop(options: LoopOptions): WorkerLoop {
  const { clock } = options
  const turns = countedTurns(options)
  const rest = pauses(clock)
  let run: Run | undefined

  return {
    start() {
      if (run !== undefined) return
      const current: Run = { draining: false, stopping: false, looped: Promise.resolve(), ended: Promise.resolve() }
      run = current
      rest.begin()
      const leave = () => void (run === current && (run = undefined))
      current.looped = goOn(options, { run: current, turns, rest })
      current.ended = current.looped.then(() => options.outstanding?.()).then(leave, leave)
    },
    wake: () => rest.wake(),
    async drain({ timeoutMs = 10_000 } = {}) {
      const current = run
      if (current === undefined) return { drained: true }
      current.draining = true
      rest.end()
      options.ending?.('drain')
      const waited = new AbortController()
      const late = sleep(clock, timeoutMs, waited.signal).then(() => false)
      const drained = await Promise.race([current.ended.then(() => true), late])
      waited.abort()
      return { drained }
    },
    async stop() {
      const current = run
      if (current === undefined) return
      current.draining = current.stopping = true
      rest.end()
      options.ending?.('stop')
      turns.giveUp()
      await current.looped
      if (run === current) run = undefined
    },
    health: () => ({ ...turns.counts(), running: run !== undefined }),
  }
}

interface Loop {
  readonly run: Run
  readonly turns: Turns
  readonly rest: Pauses
}

async function goOn(options: LoopOptions, { run, turns, rest }: Loop): Promise<void> {
  const { clock, idleMs, pauseMs = 0, jitter = 0.2, backoff = { firstMs: 500, maxMs: 30_000 } } = options
  await rest.pause(clock.random() * Math.min(idleMs, firstPauseMsMax))
  for (let failedInARow = 0; !run.draining;) {
    rest.turnBegins()
    const ended = await turns.next(() => run.stopping)
    failedInARow = ended === 'failed' ? failedInARow + 1 : 0
    if (ended === 'more') await rest.pause(pauseMs)
    else if (ended === 'failed') await rest.pause(backoffMs(backoff, failedInARow, clock))
    else await rest.idle(idleMs * (1 - jitter * clock.random()))
  }
}

/** Half of it is chance: loops that failed together, because the store went away, do not come back together. */
function backoffMs(
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
  failedInARow: number,
  { random }: Clock,
): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(failedInARow - 1, 30)) * (0.5 + random() / 2)
}
