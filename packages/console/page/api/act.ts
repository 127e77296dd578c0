/** Sends an act, keeping its request id until the outcome is known: what is sent twice by a doubtful hand is done once. */
import { useRef, useState } from 'preact/hooks'
import type { ActOutcome } from 'latchkey/admin'
import { type Answer, newRequestId, type Problem, write } from './request.ts'

export interface ActGiven {
  readonly path: string
  readonly version?: string | undefined
  readonly body: unknown
}

export interface Acting<T> {
  readonly isSending: boolean
  readonly problem: Problem | undefined
  send(given: ActGiven): Promise<Answer<T>>
  clear(): void
}

export function useAct<T = ActOutcome>(): Acting<T> {
  const [isSending, setIsSending] = useState(false)
  const [problem, setProblem] = useState<Problem>()
  const open = useRef<{ readonly what: string; readonly requestId: string }>(undefined)
  async function send({ path, version, body }: ActGiven): Promise<Answer<T>> {
    const what = JSON.stringify([path, version, body])
    if (open.current?.what !== what) open.current = { what, requestId: newRequestId() }
    setIsSending(true)
    const answer = await write<T>(path, { requestId: open.current.requestId, version, body })
    setIsSending(false)
    setProblem(answer.kind === 'problem' ? answer.problem : undefined)
    const isKnown = answer.kind !== 'problem' || (answer.problem.status > 0 && answer.problem.status < 500)
    if (isKnown) open.current = undefined
    return answer
  }
  return { isSending, problem, send, clear: () => setProblem(undefined) }
}
