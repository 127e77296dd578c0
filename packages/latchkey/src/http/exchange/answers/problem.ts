/** The answer to a problem: Latchkey's own, or what the application makes of it. */
import type { Shared } from '../../../engine/operation.ts'
import type { Problem } from '../../../wire/problem.ts'
import { describeProblem, type ProblemAnswer, renderProblem } from '../../../wire/render-problem.ts'
import type { RenderedAnswer } from '../../../wire/rendered-answer.ts'
import { mergeHeaders } from './merge-headers.ts'

export type ProblemHost<C> = Pick<Shared<C>, 'http' | 'telemetry'>

export function answerProblem<C>(problem: Problem, { http, telemetry }: ProblemHost<C>, context: C): RenderedAnswer {
  const ours = renderProblem(problem, http)
  if (http.renderProblem === undefined) return ours
  try {
    const theirs: unknown = http.renderProblem(describeProblem(problem, http), context)
    return theirs === undefined ? ours : rendered(ours, theirs)
  } catch (error) {
    telemetry.report("renderProblem failed, so Latchkey's own answer was sent", { detail: problem.code, error })
    return ours
  }
}

/** Throws where it cannot be sent. */
function rendered(ours: RenderedAnswer, theirs: unknown): RenderedAnswer {
  // An unhandled rejection would end the process.
  Promise.resolve(theirs).catch(() => {})
  if (typeof theirs !== 'object' || theirs === null || !('body' in theirs)) {
    throw new TypeError(`renderProblem must return { status, headers, body } at once (got ${String(theirs)})`)
  }
  const { status = ours.status, headers = {}, body } = theirs as ProblemAnswer // checked here and below
  // With a status of success, the client would take a refusal for done.
  if (!Number.isInteger(status) || status < 400 || status > 599) {
    throw new TypeError(`renderProblem must return a status from 400 to 599 (got ${String(status)})`)
  }
  const { type, bytes } = encoded(body)
  const own = Object.entries(headers)
  for (const field of own) checkField(field)
  const kept = ours.headers.filter(([name]) => name !== 'Content-Language')
  const typed = mergeHeaders(kept, [['Content-Type', type]])
  return { status, headers: mergeHeaders(typed, own).map(([name, value]) => [name, value]), body: bytes }
}

function encoded(body: unknown): { type: string; bytes: Uint8Array } {
  if (typeof body === 'string') return { type: 'text/plain; charset=utf-8', bytes: Buffer.from(body) }
  if (body instanceof Uint8Array) return { type: 'application/octet-stream', bytes: body }
  if (typeof body !== 'object' || body === null) {
    throw new TypeError(`renderProblem must return an object, text or bytes as the body (got ${String(body)})`)
  }
  return { type: 'application/json', bytes: Buffer.from(JSON.stringify(body)) }
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const visible = /^[\t\x20-\x7e\x80-\xff]*$/
/** The adapter's to set, from the body that is sent. */
const framing = new Set(['content-length', 'transfer-encoding', 'connection', 'content-encoding'])

function checkField([name, value]: readonly [string, unknown]): void {
  const fits = token.test(name) && typeof value === 'string' && visible.test(value)
  if (fits && !framing.has(name.toLowerCase())) return
  throw new TypeError(`renderProblem returned a header that cannot be sent: ${JSON.stringify(name)}`)
}
