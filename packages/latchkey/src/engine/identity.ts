/** From (scope, operation, key) to the row's primary key. */
import { createHash } from 'node:crypto'
import { uuidText } from '../ports/clock.ts'
import { LatchkeyError } from '../ports/errors.ts'
import type { Identity } from '../ports/store.ts'

/** A tenant, or a list such as [tenant, principal]: from the authenticated caller, never from the body. */
export type Scope = string | readonly string[]

/** For systems with one tenant only. Said aloud, because a forgotten scope lets one tenant read another's answers. */
export function singleTenant(): string {
  return 'single-tenant'
}

export interface IdentityParts {
  readonly scope: Scope
  readonly operation: string
  readonly key: string
  /** `scope`: one key spans all operations of a scope, as Stripe has it. Default: `operation`. */
  readonly keyNamespace?: 'operation' | 'scope'
}

export function identify({ scope, operation, key, keyNamespace = 'operation' }: IdentityParts): Identity {
  const parts = scopeParts(scope)
  // The namespace marker keeps a scope-wide key apart from an operation that happens to have an empty-looking name.
  const space = keyNamespace === 'scope' ? ['scope'] : ['operation', operation]
  const digest = createHash('sha256')
    .update(lengthPrefixed(['latchkey.identity.v1', String(parts.length), ...parts, ...space, key]))
    .digest()
  return { id: uuidText(digest), scope: readableScope(parts), operation }
}

/** Each part behind its byte length: ["ab","c"] and ["a","bc"] never meet. */
export function lengthPrefixed(parts: readonly string[]): string {
  return parts.map(part => `${Buffer.byteLength(part)}:${part}`).join('')
}

function scopeParts(scope: Scope): readonly string[] {
  const parts = typeof scope === 'string' ? [scope] : scope
  const usable =
    Array.isArray(parts) && parts.length > 0 && parts.every(part => typeof part === 'string' && part !== '')
  if (usable) return parts
  throw new LatchkeyError(
    'scope-unresolved',
    `the scope must be a non-empty string or a list of them, and is ${JSON.stringify(scope)}: take it from the authenticated caller, or say singleTenant`,
  )
}

function readableScope(parts: readonly string[]): string {
  return parts.map(part => part.replaceAll('%', '%25').replaceAll('/', '%2F')).join('/')
}
