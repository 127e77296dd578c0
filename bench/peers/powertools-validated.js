// The same with payload validation, which is what tells a retry from another request under the same key.
import { openWith } from './powertools.js'

export function open(place) {
  return openWith(place, { payloadValidationJmesPath: 'body' })
}
