/** From a captured response to what the engine judges and stores. */
import type { Attempt } from '../../engine/answer.ts'
import type { Header } from '../../ports/outcome.ts'

/** A whole response with a clean end, as the client would get it. */
export interface CapturedResponse {
  readonly status: number
  /** What was set after Latchkey began; see `addedHeaders`. */
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/**
 * The attempt of a handler that answered. `error`: the answer was rendered from this throw, so that an atomic operation rolls
 * its rows back. It goes in whole; the engine applies the cap, and leaves out the headers that are not stored.
 */
export function attemptOf(response: CapturedResponse, error?: unknown): Attempt {
  const { status, body } = response
  const outcome = { status, headers: response.headers, body, version: 0 }
  return error === undefined ? { kind: 'answered', outcome } : { kind: 'answered', outcome, error }
}

/**
 * The headers that are new or changed. What an outer middleware set before is not kept with the outcome: it runs again for a
 * replay and sets what fits that caller.
 */
export function addedHeaders(before: readonly Header[], after: readonly Header[]): readonly Header[] {
  if (before.length === 0) return after
  const known = valuesByName(before)
  const now = valuesByName(after)
  return after.filter(([name, value]) => {
    const lower = name.toLowerCase()
    const old = known.get(lower)
    if (old === undefined) return true
    const current = now.get(lower)
    // Vary and Link grow: keep what was appended. A value that was replaced is kept whole.
    const grew = current !== undefined && old.every(one => current.includes(one))
    return grew ? !old.includes(value) : true
  })
}

function valuesByName(headers: readonly Header[]): Map<string, string[]> {
  const values = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    values.set(lower, [...(values.get(lower) ?? []), value])
  }
  return values
}
