import type { Header } from '../../ports/outcome.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { mergeHeaders } from '../exchange/answers/merge-headers.ts'

/**
 * An answer of ours with the headers that outer middleware had set, for frameworks that do not keep those on the response itself. Ours
 * replaces a name, except where the field grows (Vary, Link).
 */
export function answerOver(before: readonly Header[], answer: RenderedAnswer): RenderedAnswer {
  return { ...answer, headers: mergeHeaders(before, answer.headers).map(([name, value]) => [name, value]) }
}
