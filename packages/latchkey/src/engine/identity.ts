/** From (scope, operation, key) to the row's primary key. */
import { hash } from 'node:crypto'
import { uuidOfHex } from '../ports/clock.ts'
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
  const space = keyNamespace === 'scope' ? '5:scope' : `9:operation${prefixed(operation)}`
  const text = `20:latchkey.identity.v1${prefixed(String(parts.length))}${lengthPrefixed(parts)}${space}${prefixed(key)}`
  return { id: uuidOfHex(hash('sha256', text, 'hex')), scope: readableScope(parts), operation }
}

/** Each part behind its byte length: ["ab","c"] and ["a","bc"] never meet. */
export function lengthPrefixed(parts: readonly string[]): string {
  let text = ''
  for (const part of parts) text += prefixed(part)
  return text
}

function prefixed(part: string): string {
  return `${Buffer.byteLength(part)}:${part}`
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

/** As it stands in a row. Two scopes have the same text exactly when they are the same. */
export function scopeText(scope: Scope): string {
  return readableScope(scopeParts(scope))
}

function readableScope(parts: readonly string[]): string {
  const [only = ''] = parts
  if (parts.length === 1 && !/[%/]/.test(only)) return only
  return parts.map(part => part.replaceAll('%', '%25').replaceAll('/', '%2F')).join('/')
}
