/** What every execution goes through: a closed instance, the wait for a twin, and the count of what is under way. */
import { type Answer, type ExecuteRequest, refused, type Work } from '../answer.ts'
import type { Core } from '../runtime.ts'
import type { Settings } from '../options.ts'

/** A twin in another process is found by asking again: often at first, then once a second. */
const firstPollMs = 50
const pollMsMax = 1_000

export interface Waiting<X> {
  readonly request: ExecuteRequest
  readonly work: Work<X>
  /** One look at the row: claims and runs `work`, or answers from what it saw. */
  readonly once: (work: Work<X>, request: ExecuteRequest) => Promise<Answer>
}

export function withWaiting<Tx, C, X>(core: Core<Tx>, settings: Settings<C>, waiting: Waiting<X>): Promise<Answer> {
  // Only at the door: what already waits for its twin during a shutdown may still get its answer.
  if (core.draining.signal.aborted) return Promise.resolve(closed())
  return core.checks.passed ? begin(core, settings, waiting) : unlessUnfit(core, () => begin(core, settings, waiting))
}

function begin<Tx, C, X>(core: Core<Tx>, settings: Settings<C>, waiting: Waiting<X>): Promise<Answer> {
  return settings.onInProgress === 'wait'
    ? waitForTwin(core, settings, waiting)
    : waiting.once(waiting.work, waiting.request)
}

/** Nothing is begun on a store that is known to be unfit, whatever the operation allows when it is down. */
export async function unlessUnfit<Tx>(core: Core<Tx>, next: () => Promise<Answer>): Promise<Answer> {
  const cause = await core.checks.fault()
  return cause === undefined ? next() : refused('store-unavailable', { cause, retryAfterMs: 1_000 })
}

async function waitForTwin<Tx, C, X>(core: Core<Tx>, settings: Settings<C>, waiting: Waiting<X>): Promise<Answer> {
  const { clock, waiters, closing } = core
  const until = clock.monotonicMs() + settings.waitMs
  let { request } = waiting
  let ran = false
  const work: Work<X> = execution => {
    ran = true
    return waiting.work(execution)
  }
  let answer: Answer | undefined
  for (let pollMs = firstPollMs; ; pollMs = Math.min(2 * pollMs, pollMsMax)) {
    // Whoever has seen its twin is not told that nothing was executed.
    if (closing.signal.aborted) return answer ?? closed()
    answer = await waiting.once(work, request)
    // Whoever ran once does not wait: a handler is never called twice for one caller.
    if (!isInProgress(answer) || ran) return answer
    const leftMs = until - clock.monotonicMs()
    // Jitter keeps a crowd of waiters in several processes from asking in step.
    const pauseMs = Math.min(leftMs, pollMs * (0.75 + clock.random() / 2))
    if (leftMs <= 0 || !(await waiters.wait(request.identity, pauseMs))) return answer
    request = { ...waiting.request, asksAgain: true }
  }
}

export function tracked<Tx, T>(core: Core<Tx>, promise: Promise<T>): Promise<T> {
  const { running } = core
  running.count += 1
  const ended = () => {
    running.count -= 1
    if (running.count === 0) for (const tell of running.whenIdle.splice(0)) tell()
  }
  promise.then(ended, ended)
  return promise
}

export function untilIdle<Tx>({ running }: Core<Tx>): Promise<void> {
  return running.count === 0 ? Promise.resolve() : new Promise(resolve => running.whenIdle.push(resolve))
}

function isInProgress(answer: Answer): boolean {
  return answer.kind === 'refused' && answer.refusal.code === 'in-progress'
}

function closed(): Answer {
  return refused('store-unavailable', { cause: new Error('Latchkey is closed'), retryAfterMs: 1_000 })
}
