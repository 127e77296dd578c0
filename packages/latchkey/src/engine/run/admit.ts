/**
 * The way into every execution: a closed instance, an unfit store, a request that is too old, and the wait for a concurrent duplicate, which
 * is the same request under way in this process or another.
 */
import { type Clock, sleep } from '../../ports/clock.ts'
import type { Identity, KeyRecord } from '../../ports/store.ts'
import { type Answer, closed, type ExecuteRequest, inProgress, isInProgress, refused, unavailable } from '../answer.ts'
import { recordingMisuse } from '../audit/misuse.ts'
import { withLimits } from '../limits/with-limits.ts'
import type { Settings } from '../options.ts'
import type { Core } from '../runtime.ts'
import { answerFromRow } from './answer-from-row.ts'

/** One look at the row: claims it and runs the work, or answers from what it holds. */
export type Once<W> = (request: ExecuteRequest, work: W) => Promise<Answer>

/** An operation's `execute`, from its `once`. */
export function admit<Tx, C, W>(core: Core<Tx>, settings: Settings<C>, once: Once<W>): Once<W> {
  const bounded = withLimits(core, settings.gates, once)
  return recordingMisuse(core, (request, work) => {
    // Checked here only: a request that already waits when the shutdown begins may still get its answer.
    if (core.draining.signal.aborted) return Promise.resolve(closed())
    const isPlain = core.checks.passed && request.tooOld !== true && settings.onInProgress !== 'wait'
    return tracked(
      core,
      isPlain ? bounded(request, work) : admitChecked(core, settings, { request, work, once: bounded }),
    )
  })
}

interface Entry<W> {
  readonly request: ExecuteRequest
  readonly work: W
  readonly once: Once<W>
}

/** Nothing is begun on a store that is known to be unfit, whatever the operation allows while the store is down. */
export async function admitChecked<Tx, C, W>(core: Core<Tx>, settings: Settings<C>, entry: Entry<W>): Promise<Answer> {
  const fault = core.checks.passed ? undefined : await core.checks.fault()
  if (fault !== undefined) return unavailable(fault)
  return settings.onInProgress === 'wait'
    ? waitForDuplicate(core, settings, entry)
    : unlessTooOld(core, settings, entry)
}

/** A duplicate in another process is found by looking again: often at first, then once a second. */
const firstPollMs = 50
const pollMsMax = 1_000

async function waitForDuplicate<Tx, C, W>(core: Core<Tx>, settings: Settings<C>, entry: Entry<W>): Promise<Answer> {
  const { clock, waiters, closing } = core
  const until = clock.monotonicMs() + settings.waitMs
  let ran = false
  const onStart = () => {
    ran = true
    entry.request.onStart?.()
  }
  let answer: Answer | undefined
  for (let pollMs = firstPollMs; ; pollMs = Math.min(2 * pollMs, pollMsMax)) {
    // A caller whose duplicate was seen must not be answered that nothing was executed.
    if (closing.signal.aborted) return answer ?? closed()
    const request = { ...entry.request, onStart, asksAgain: answer !== undefined }
    answer = await unlessTooOld(core, settings, { ...entry, request })
    // A handler is never called twice for one caller, so a caller whose handler ran does not wait.
    if (!isInProgress(answer) || ran) return answer
    const leftMs = until - clock.monotonicMs()
    // Jitter keeps many waiters in several processes from polling in step.
    const pauseMs = Math.min(leftMs, pollMs * (0.75 + clock.random() / 2))
    if (leftMs <= 0 || !(await waiters.wait(request.identity, pauseMs))) return answer
  }
}

/** A row that changes between two looks changes rarely more often than this. */
const looksMax = 5

/**
 * Whether a request is too old is decided before anything is reserved: one that has a row is answered from it as always, or resumes it; one
 * without a row, or with one that proves that nothing happened, is refused. So what is refused today is not executed tomorrow.
 */
async function unlessTooOld<Tx, C, W>(core: Core<Tx>, settings: Settings<C>, entry: Entry<W>): Promise<Answer> {
  const { work, once } = entry
  let { request } = entry
  if (request.tooOld !== true) return once(request, work)
  const { id } = request.identity
  for (let look = 0; look < looksMax; look++) {
    const read = await core.calls.call('read', () => core.store.read(id)).catch((cause: unknown) => ({ cause }))
    if (read !== undefined && 'cause' in read) return unavailable(read.cause)
    if (read === undefined || !isAlive(read)) return refused('key-too-old')
    // An unfinished row does not go away: a claim resumes it, and begins nothing.
    if (read.state !== 'completed') return once(request, work)
    const found = await answerFromRow(core, settings, { record: read, request })
    if (found.kind === 'answer') return found.answer
    request = found.request
  }
  return inProgress()
}

function isAlive({ expired, state, recovery, parked }: KeyRecord): boolean {
  if (expired) return false
  // Phased work that failed for now is not over: a worker resumes it, whatever its client is answered.
  return state !== 'failed_retryable' || parked || recovery === 'resume'
}

/** Counts an execution as under way, so that `close` can wait for it. */
export function tracked<Tx, T>({ running }: Core<Tx>, promise: Promise<T>): Promise<T> {
  running.count += 1
  const ended = () => {
    running.count -= 1
    if (running.count === 0) for (const resolve of running.whenIdle.splice(0)) resolve()
  }
  promise.then(ended, ended)
  return promise
}

export function untilIdle<Tx>({ running }: Core<Tx>): Promise<void> {
  return running.count === 0 ? Promise.resolve() : new Promise(resolve => running.whenIdle.push(resolve))
}

/** Requests that wait for a concurrent duplicate. An end in this process wakes them at once. */
export interface Waiters {
  /** Ends when woken or after `waitMs`; false at once when too many wait already. Holds no connection. */
  wait(duplicate: Pick<Identity, 'id' | 'scope'>, waitMs: number): Promise<boolean>
  wake(id: string): void
  wakeAll(): void
}

/** More than this on one key is an accident or an attack; the rest get their 409 at once. */
const perKeyMax = 100
/**
 * Bounds the memory of one process. A scope never holds more of it than it leaves free: half of it where it is alone, a third each
 * where two compete, and there is always room for one more tenant.
 */
const perProcessMax = 1_000

export function waiters(clock: Clock): Waiters {
  const byId = new Map<string, Set<AbortController>>()
  const heldBy = new Map<string, number>()
  let total = 0

  function hold(scope: string, change: 1 | -1): void {
    const held = (heldBy.get(scope) ?? 0) + change
    total += change
    if (held === 0) heldBy.delete(scope)
    else heldBy.set(scope, held)
  }

  function wake(id: string): void {
    for (const woken of byId.get(id) ?? []) woken.abort()
  }

  return {
    async wait({ id, scope }, waitMs) {
      const group = byId.get(id) ?? new Set()
      const held = heldBy.get(scope) ?? 0
      if (held >= perProcessMax - total || group.size >= perKeyMax) return false
      const woken = new AbortController()
      hold(scope, 1)
      byId.set(id, group.add(woken))
      await sleep(clock, waitMs, woken.signal)
      hold(scope, -1)
      group.delete(woken)
      if (group.size === 0) byId.delete(id)
      return true
    },
    wake,
    wakeAll() {
      for (const id of byId.keys()) wake(id)
    },
  }
}
