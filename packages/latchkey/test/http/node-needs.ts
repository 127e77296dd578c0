/** What adapters on Node's own response provide to the cases of the conformance suite. */
import type { AdapterNeed } from '@latchkey/conformance'

export const middlewareNeeds: readonly AdapterNeed[] = [
  'body',
  'stream',
  'broken-stream',
  'pipe',
  'source',
  'file',
  'early-hints',
  'trailers',
  'error-handler',
]

/** Where the adapter has the handler in its hands. */
export const handlerNeeds: readonly AdapterNeed[] = [...middlewareNeeds, 'transactional', 'phased', 'deferred']
