/** How much of an answer is held before it is sent. */
import type { engine } from '../../engine/internal.ts'
import type { Settings } from '../../engine/options.ts'

/** An operation of whatever kind. What is larger is not stored, so holding more of it would only cost memory. */
export interface LimitedOperation {
  readonly [engine]: { readonly settings: Pick<Settings, 'outcomeBytesMax'> }
}

/** A stream of events, which may never end: WHATWG HTML, section 9.2. */
export function isEventStreamType(contentType: string | null): boolean {
  return contentType !== null && /^\s*text\/event-stream\s*(;|$)/i.test(contentType)
}
