/** The 202 of deferred work: where to look, and how soon. */
import type { HttpOptions } from '../../../engine/operation.ts'
import { preferenceApplied } from '../../../wire/headers.ts'
import { prefersAsync } from '../../../wire/prefer.ts'
import { type RenderedAnswer, renderAccepted } from '../../../wire/problem.ts'
import type { RequestView } from '../request.ts'

/** A worker looks once a second or so; a client that comes back sooner finds the same. */
const retryAfterMs = 1_000

export interface Queued {
  readonly view: RequestView<unknown>
  readonly http: HttpOptions
}

/** The same bytes for every retry before the end: what has become of it since, the status tells. */
export function renderQueued(id: string, { view, http }: Queued): RenderedAnswer {
  const statusUrl = statusPathOf(http, id)
  const { status, headers, body } = renderAccepted({
    retryAfterMs,
    content: { id, state: 'pending', status_url: statusUrl },
  })
  const applied: [string, string][] = prefersAsync(view.header('Prefer')) ? [[preferenceApplied, 'respond-async']] : []
  return { status, headers: [...headers, ['Location', statusUrl], ...applied], body }
}

function statusPathOf({ statusPath = id => `/operations/${id}` }: HttpOptions, id: string): string {
  return statusPath(id)
}
