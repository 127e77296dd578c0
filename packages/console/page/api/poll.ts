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
const resumed = new Set<() => void>()

export function isHeld(): boolean {
  return holds.size > 0 || document.hidden
}

function wake(): void {
  if (!isHeld()) for (const each of resumed) each()
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

interface PollOptions {
  readonly everyMs: number
  /** Also while a dialog is open: it is what the dialog waits for. */
  readonly isOfDialog?: boolean
}

export function usePoll<T>(path: string | undefined, { everyMs, isOfDialog = false }: PollOptions): Polled<T> {
  const [state, setState] = useState<Omit<Polled<T>, 'refresh'> & { path: string | undefined }>(nothing(path))
  const turn = useRef<() => void>(() => {})
  useEffect(() => {
    if (path === undefined) return undefined
    setState(nothing(path))
    const poller = openPoller<T>(path, { everyMs, isOfDialog }, next => {
      setState(before => ({
        path,
        value: next.value ?? before.value,
        problem: next.problem,
        readAtMs: next.problem === undefined ? performance.now() : before.readAtMs,
      }))
    })
    turn.current = poller.refresh
    return poller.stop
  }, [path, everyMs, isOfDialog])
  const refresh = useCallback(() => turn.current(), [])
  // A change of the address takes a render to arrive here: what the old one gave must not be shown under the new one.
  return { ...(state.path === path ? state : nothing(path)), refresh }
}

function nothing(path: string | undefined) {
  return { path, value: undefined, problem: undefined, readAtMs: performance.now() }
}

interface Turn<T> {
  readonly value?: T
  readonly problem: Problem | undefined
}

function openPoller<T>(path: string, { everyMs, isOfDialog }: Required<PollOptions>, onTurn: (turn: Turn<T>) => void) {
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
      return
    }
    timer = setTimeout(next, Math.min(everyMs * 2 ** Math.min(failures, 4), slowestMs))
  }

  function next(): void {
    const mustWait = isOfDialog ? document.hidden : isHeld()
    // `wake` calls when the last reason to stand still is gone.
    if (!mustWait) void turn()
  }

  const refresh = () => void turn()
  resumed.add(refresh)
  void turn()
  return {
    refresh,
    stop() {
      ended.abort()
      clearTimeout(timer)
      resumed.delete(refresh)
    },
  }
}
