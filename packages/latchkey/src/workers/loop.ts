/**
 * The loop of all background work: turn after turn, a pause when there is nothing to do, a longer one after a failure. What a turn does
 * is fenced in the store, so any number of loops of one kind may run in any number of processes.
 */
import { type Clock, sleep } from '../ports/clock.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { type InterruptiblePauses, interruptiblePauses } from './interruptible-pauses.ts'
import { type TurnRunner, turnRunner } from './turn-runner.ts'

/** `more`: the batch was full, so the next turn follows at once. `idle`: there is nothing to do for now. */
export type TurnResult = 'more' | 'idle'

export interface LoopOptions {
  readonly name: string
  /** One bounded batch. The signal aborts when the turn is given up: it took too long, or the loop was stopped. */
  readonly turn: (signal: AbortSignal) => Promise<TurnResult>
  /** The longest pause after an idle turn: jitter makes it shorter, never longer, so that "every 60 s" holds. */
  readonly idleMs: number
  /** The pause between two turns while there is more. Default 0. The reaper needs one, to leave room for live traffic. */
  readonly pauseMs?: number
  /** The share of `idleMs` that chance may remove. Default 0.2: processes that started together drift apart. */
  readonly jitter?: number
  /** The pause after consecutive failures: doubled from `firstMs` up to `maxMs`. Default 500 ms and 30 s. */
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number }
  /** A turn that takes longer is given up and counted as failed; the loop continues. Default 60 s. */
  readonly turnMsMax?: number
  /** Work that turns started and did not await; `drain` waits for it. */
  readonly outstanding?: () => Promise<unknown>
  /** Called when `drain` or `stop` begins, to end work that outlasts its turn and need not finish. */
  readonly ending?: (how: 'drain' | 'stop') => void
  readonly clock: Clock
  readonly telemetry: Telemetry
}

export interface LoopHealth {
  /** From `start` until the last turn has ended after `drain` or `stop`. */
  readonly running: boolean
  /** When a turn last ended, successfully or not. Wall time, for people. */
  readonly lastTurnAtMs: number | undefined
  /** The error of the last turn, if it failed. */
  readonly lastError: unknown
  readonly turns: number
  readonly failures: number
}

export interface WorkerLoop {
  /** Keeps the process alive until `drain` or `stop`. Does nothing while it is running; may be called again after either. */
  start(): void
  /** A hint that there is work: ends an idle pause, but not a pause after a failure. Many hints cause one turn. */
  wake(): void
  /** No new turn; waits for the running one, at most `timeoutMs` (default 10 s). `drained: false`: it is still running. */
  drain(options?: { timeoutMs?: number }): Promise<{ drained: boolean }>
  /** No new turn; aborts the running one and does not wait for it. */
  stop(): Promise<void>
  health(): LoopHealth
}

/** Long enough to spread a fleet that starts at once, short enough for a process that crashes often to get its turns. */
const firstPauseMsMax = 1_000

interface LoopRun {
  draining: boolean
  stopping: boolean
  /** The last turn has ended, or was given up. */
  looped: Promise<void>
  /** And nothing that the turns started is still running. */
  ended: Promise<void>
}

export function workerLoop(options: LoopOptions): WorkerLoop {
  const { clock } = options
  const turns = turnRunner(options)
  const pauses = interruptiblePauses(clock)
  let run: LoopRun | undefined

  return {
    start() {
      if (run !== undefined) return
      const current: LoopRun = { draining: false, stopping: false, looped: Promise.resolve(), ended: Promise.resolve() }
      run = current
      pauses.begin()
      const leave = () => void (run === current && (run = undefined))
      current.looped = loop(options, { run: current, turns, pauses })
      current.ended = current.looped.then(() => options.outstanding?.()).then(leave, leave)
    },
    wake: () => pauses.wake(),
    async drain({ timeoutMs = 10_000 } = {}) {
      const current = run
      if (current === undefined) return { drained: true }
      current.draining = true
      pauses.end()
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
      pauses.end()
      options.ending?.('stop')
      turns.giveUp()
      await current.looped
      if (run === current) run = undefined
    },
    health: () => ({ ...turns.counts(), running: run !== undefined }),
  }
}

interface LoopParts {
  readonly run: LoopRun
  readonly turns: TurnRunner
  readonly pauses: InterruptiblePauses
}

async function loop(options: LoopOptions, { run, turns, pauses }: LoopParts): Promise<void> {
  const { clock, idleMs, pauseMs = 0, jitter = 0.2, backoff = { firstMs: 500, maxMs: 30_000 } } = options
  await pauses.pause(clock.random() * Math.min(idleMs, firstPauseMsMax))
  for (let failedInARow = 0; !run.draining;) {
    pauses.turnBegins()
    const ended = await turns.next(() => run.stopping)
    failedInARow = ended === 'failed' ? failedInARow + 1 : 0
    if (ended === 'more') await pauses.pause(pauseMs)
    else if (ended === 'failed') await pauses.pause(backoffMs(backoff, failedInARow, clock))
    else await pauses.idle(idleMs * (1 - jitter * clock.random()))
  }
}

/** Half of it is random, so that loops that failed together, because the store went away, do not retry together. */
function backoffMs(
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
  failedInARow: number,
  { random }: Clock,
): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(failedInARow - 1, 30)) * (0.5 + random() / 2)
}
