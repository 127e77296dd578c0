/**
 * What the declared operations promise to clients, as a fragment of an OpenAPI 3.1 document and as Markdown. Made from the declarations
 * themselves, so that the documentation of an API cannot disagree with its behaviour.
 */
import { engine } from '../engine/internal.ts'
import type { LatchkeyEngine } from '../engine/latchkey.ts'
import type { Documented } from './answers.ts'
import { fragmentOf, type OpenApiFragment } from './fragment.ts'
import { markdownOf } from './markdown.ts'

export type { OpenApiFragment, OperationFacts, OperationFragment } from './fragment.ts'
export type { KeyDescription } from './key.ts'

export interface Documentation extends OpenApiFragment {
  /** One section for each operation, in the order of their declaration. */
  readonly markdown: string
}

/** Call it when all operations are declared. */
export function openapi<Context>(latchkey: {
  readonly [engine]: Pick<LatchkeyEngine<never, Context>, 'declared'>
}): Documentation {
  const operations = [...latchkey[engine].declared.values()].map((operation): Documented => {
    const { settings, shared, deadlineMs } = operation[engine]
    // Only what it holds is read, never a function that takes the context.
    return { name: operation.name, kind: operation.kind, settings: settings as never, deadlineMs, http: shared.http }
  })
  return { ...fragmentOf(operations), markdown: markdownOf(operations) }
}
