/** The 202 of deferred work: where and when to ask for its status. */
import type { HttpOptions } from '../../../engine/operation.ts'
import { preferenceApplied } from '../../../wire/headers.ts'
import { prefersAsync } from '../../../wire/prefer.ts'
import { type RenderedAnswer, renderAccepted } from '../../../wire/rendered-answer.ts'
import type { RequestView } from '../request.ts'

/** A worker looks for work about once a second; a client that asks sooner gets the same answer. */
const retryAfterMs = 1_000

type StatusPlace = Pick<HttpOptions, 'statusPath'>

export interface AcceptedRequest {
  readonly view: RequestView<unknown>
  readonly http: StatusPlace
}

/** The same bytes for every retry before the end: the status resource reports the progress. */
export function renderQueued(id: string, { view, http }: AcceptedRequest): RenderedAnswer {
  const statusUrl = statusPathOf(http, id)
  const { status, headers, body } = renderAccepted({
    retryAfterMs,
    content: { id, state: 'pending', status_url: statusUrl },
  })
  const applied: [string, string][] = prefersAsync(view.header('Prefer')) ? [[preferenceApplied, 'respond-async']] : []
  return { status, headers: [...headers, ['Location', statusUrl], ...applied], body }
}

function statusPathOf({ statusPath = id => `/operations/${id}` }: StatusPlace, id: string): string {
  return statusPath(id)
}
