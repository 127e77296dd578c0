/** Reads an address again and again: with its ETag, and only while somebody looks and nothing would jump under their hands. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { type Problem, read } from './request.ts'

const slowestMs = 30_000

export interface Polled<T> {
  readonly value: T | undefined
  /** Of the last attempt. The value stays the one before. */
  readonly problem: Problem | undefined
  /** On the clock of `performance.now`, when the value was last known to be current. */
  readonly readAtMs: number
  refresh(): void
}

/** Reasons to stand still: rows are selected, a dialog is open, somebody pressed pause. */
const holds = new Set<symbol>()
/** Every poller, which knows itself whether it still has to wait. */
const pollers = new Set<() => void>()

function isHeld(): boolean {
  return holds.size > 0 || document.hidden
}

function wake(): void {
  for (const goOn of pollers) goOn()
}

document.addEventListener('visibilitychange', wake)

export function useHold(isActive: boolean): void {
  useEffect(() => {
    if (!isActive) return undefined
    const hold = Symbol('hold')
    holds.add(hold)
    return () => {
      holds.delete(hold)
      wake()
    }
  }, [isActive])
}

interface PollOptions<T> {
  readonly everyMs: number
  /** Also while a dialog is open: it is what the dialog waits for. */
  readonly isOfDialog?: boolean
  /** A value after which nothing changes any more. Has to be the same function in every render. */
  readonly isLast?: (value: T) => boolean
}

export function usePoll<T>(path: string | undefined, options: PollOptions<T>): Polled<T> {
  const { everyMs, isOfDialog = false, isLast = never } = options
  const [state, setState] = useState<Omit<Polled<T>, 'refresh'> & { path: string | undefined }>(nothing(path))
  const turn = useRef<() => void>(() => {})
  useEffect(() => {
    if (path === undefined) return undefined
    setState(nothing(path))
    const poller = openPoller<T>(path, { everyMs, isOfDialog, isLast }, next => {
      setState(before => ({
        path,
        value: next.value ?? before.value,
        problem: next.problem,
        readAtMs: next.problem === undefined ? performance.now() : before.readAtMs,
      }))
    })
    turn.current = poller.refresh
    return poller.stop
  }, [path, everyMs, isOfDialog, isLast])
  const refresh = useCallback(() => turn.current(), [])
  // A change of the address takes a render to arrive here: what the old one gave must not be shown under the new one.
  return { ...(state.path === path ? state : nothing(path)), refresh }
}

function never(): boolean {
  return false
}

function nothing(path: string | undefined) {
  return { path, value: undefined, problem: undefined, readAtMs: performance.now() }
}

interface Turn<T> {
  readonly value?: T
  readonly problem: Problem | undefined
}

function openPoller<T>(path: string, options: Required<PollOptions<T>>, onTurn: (turn: Turn<T>) => void) {
  const { everyMs, isOfDialog, isLast } = options
  const ended = new AbortController()
  let etag: string | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let isReading = false
  let isAskedAgain = false
  let failures = 0

  async function turn(): Promise<void> {
    clearTimeout(timer)
    if (isReading) {
      isAskedAgain = true
      return
    }
    isReading = true
    const answer = await read<T>(path, { etag, signal: ended.signal })
    isReading = false
    if (ended.signal.aborted) return
    failures = answer.kind === 'problem' ? failures + 1 : 0
    if (answer.kind === 'ok') etag = answer.etag
    onTurn(
      answer.kind === 'ok'
        ? { value: answer.value, problem: undefined }
        : { problem: answer.kind === 'problem' ? answer.problem : undefined },
    )
    if (isAskedAgain) {
      isAskedAgain = false
      void turn()
    } else if (answer.kind === 'ok' && isLast(answer.value)) pollers.delete(goOn)
    else timer = setTimeout(goOn, Math.min(everyMs * 2 ** Math.min(failures, 4), slowestMs))
  }

  /** Where it has to wait, `wake` calls again. */
  function goOn(): void {
    const mustWait = isOfDialog ? document.hidden : isHeld()
    if (!mustWait) void turn()
  }

  const refresh = () => void turn()
  pollers.add(goOn)
  void turn()
  return {
    refresh,
    stop() {
      ended.abort()
      clearTimeout(timer)
      pollers.delete(goOn)
    },
  }
}
