// @aws-lambda-powertools/idempotency with its cache persistence layer and the Redis client it names. The key is taken from
// the event.
import { createClient } from '@redis/client'
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency'
import { CachePersistenceLayer } from '@aws-lambda-powertools/idempotency/cache'

const statuses = { IdempotencyAlreadyInProgressError: 409, IdempotencyValidationError: 422 }

// Payload validation stays off under load: with it on this layer refuses every honest replay (see powertools-validated.js).
export function open(place) {
  return openWith(place, {})
}

export async function openWith(place, options) {
  const client = await createClient({ url: place }).connect()
  const config = new IdempotencyConfig({ eventKeyJmesPath: 'key', throwOnNoIdempotencyKey: true, ...options })
  // It warns at every request about a missing Lambda deadline.
  config.registerLambdaContext({ getRemainingTimeInMillis: () => 30_000 })
  const idempotent = makeIdempotent((_event, handle) => handle(), {
    persistenceStore: new CachePersistenceLayer({ client }),
    config,
  })
  return {
    kind: 'plain',
    async run({ key, body }, handle) {
      try {
        return { receipt: await idempotent({ key, body }, handle) }
      } catch (error) {
        if (statuses[error.name] !== undefined) return { status: statuses[error.name] }
        throw error
      }
    },
    stored: () => client.dbSize(),
  }
}
