/** For browser clients of another origin. */
import { engine } from '../../engine/internal.ts'
import type { Settings } from '../../engine/options.ts'
import {
  idempotencyKey,
  idempotencyKeyExpiresAt,
  idempotencyStored,
  idempotentReplayed,
  latchkeyRetry,
  preferenceApplied,
  retryAfterMilliseconds,
  stripeShouldRetry,
  xShouldRetry,
} from '../../wire/headers.ts'

/** What `corsHeaders` reads of an operation. */
export interface KeyedOperation {
  readonly [engine]: { readonly settings: Pick<Settings<never>, 'key'> }
}

/**
 * The names a browser client needs: `allow` for Access-Control-Allow-Headers of the preflight, `expose` for Access-Control-Expose-Headers of
 * every response. Location and Retry-After are not readable across origins by default. Name the operations whose `key` is another header:
 * `corsHeaders(pay, refund)`. Where a function reads the key, allow what it reads yourself.
 */
export function corsHeaders(...operations: readonly KeyedOperation[]): { allow: string[]; expose: string[] } {
  const names = operations
    .map(operation => operation[engine].settings.key)
    .flatMap(key => ('header' in key ? key.header : []))
  return {
    allow: [...new Set(operations.length === 0 ? [idempotencyKey] : names), 'Prefer'],
    expose: [
      idempotentReplayed,
      idempotencyStored,
      idempotencyKeyExpiresAt,
      latchkeyRetry,
      preferenceApplied,
      'Location',
      'Retry-After',
      retryAfterMilliseconds,
      xShouldRetry,
      stripeShouldRetry,
      'Link',
    ],
  }
}
