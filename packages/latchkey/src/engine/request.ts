/**
 * The one place that builds an ExecuteRequest: HTTP and `operation.run` hand in its parts. And its identity: from (scope, operation, key)
 * to the row's primary key.
 */
import { hash } from 'node:crypto'
import { type Clock, uuidOfHex } from '../ports/clock.ts'
import { LatchkeyError } from '../ports/errors.ts'
import { sealedTextMark } from '../ports/sealed-marks.ts'
import type { Identity } from '../ports/store.ts'
import type { ExecuteRequest } from './answer.ts'
import { hasLoneSurrogate } from './fingerprint/json/scalar.ts'
import type { Settings } from './options.ts'
import { type Age, ageOfKey, isTooOld } from './rules/age.ts'

/** An operation, as far as its requests need it. */
export interface RequestOwner<C> {
  readonly name: string
  readonly settings: Settings<C>
}

export interface RequestParts extends Pick<
  ExecuteRequest,
  'identity' | 'key' | 'fingerprint' | 'previousFingerprint' | 'authorizeReplay'
> {
  readonly isTooOld?: boolean
  /** For `describe`, which is called with its result. Absent: the row is not described. */
  readonly input?: (() => unknown) | undefined
}

export function executeRequest<C>({ describe }: Settings<C>, parts: RequestParts): ExecuteRequest {
  const { identity, key, fingerprint, previousFingerprint, authorizeReplay, isTooOld = false, input } = parts
  const description = describe === undefined || input === undefined ? undefined : describedBy(describe, input())
  return { identity, key, tooOld: isTooOld, fingerprint, previousFingerprint, description, authorizeReplay }
}

export function identityOf<C>({ name, settings }: RequestOwner<C>, scope: Scope, key: string): Identity {
  return identify({ scope, operation: name, key, keyNamespace: settings.keyNamespace })
}

/** A key that spans a scope does not name its operation, so the fingerprint does. */
export function fingerprintedName<C>({ name, settings }: RequestOwner<C>): string | undefined {
  return settings.keyNamespace === 'scope' ? name : undefined
}

const fine: Age = { kind: 'fine' }

export function keyAge({ keyAgeMsMax }: Pick<Settings, 'keyAgeMsMax'>, key: string, clock: Pick<Clock, 'nowMs'>): Age {
  return keyAgeMsMax === undefined ? fine : ageOfKey(key, keyAgeMsMax, clock.nowMs())
}

/** By `requestTime`. One that throws is one without a time. */
export function isRequestTooOld<C>(
  { requestTime, requestAgeMsMax }: Pick<Settings<C>, 'requestTime' | 'requestAgeMsMax'>,
  context: C,
  clock: Pick<Clock, 'nowMs'>,
): boolean {
  if (requestTime === undefined || requestAgeMsMax === undefined) return false
  try {
    return isTooOld(requestTime(context), requestAgeMsMax, clock.nowMs())
  } catch {
    return true
  }
}

/** Shown to operators. */
const descriptionCharactersMax = 80

/** A `describe` that throws describes nothing. */
function describedBy(describe: (input: unknown) => string, input: unknown): string | undefined {
  try {
    const description = describe(input).slice(0, descriptionCharactersMax)
    // A text that begins with the mark would be taken for an encrypted one.
    return description.startsWith(sealedTextMark) ? ` ${description.slice(1)}` : description
  } catch {
    return undefined
  }
}

/** A tenant, or a list such as [tenant, principal]: from the authenticated caller, never from the body. */
export type Scope = string | readonly string[]

/** For systems with one tenant only. Explicit, because a forgotten scope lets one tenant read another's answers. */
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
  checkKeyText(operation, key)
  // The namespace marker separates a scope-wide key from an operation that happens to have an empty-looking name.
  const space = keyNamespace === 'scope' ? '5:scope' : `9:operation${prefixed(operation)}`
  const text = `20:latchkey.identity.v1${prefixed(String(parts.length))}${lengthPrefixed(parts)}${space}${prefixed(key)}`
  return { id: uuidOfHex(hash('sha256', text, 'hex')), scope: readableScope(parts), operation }
}

const rowId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Whether a text has the form of a row's id, in lower case as stores write it. */
export function isRowId(text: string): boolean {
  return rowId.test(text)
}

/** U+0000 is fine in a key, which is hashed and never stored. */
function checkKeyText(operation: string, key: string): void {
  if (plainText.test(key) || !hasLoneSurrogate(key)) return
  throw new LatchkeyError('invalid-key', `${operation}: the key holds a lone surrogate, which is not a character`)
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
  const fault = scopeFault(parts)
  if (fault === undefined) return parts
  throw new LatchkeyError(
    'scope-unresolved',
    `the scope must be a non-empty string or a list of them, and ${fault}: take it from the authenticated caller, or use singleTenant`,
  )
}

/** Far above any id of a tenant and a principal. It stands in every row and in every listing. */
export const scopeBytesMax = 1_024

function scopeFault(parts: unknown): string | undefined {
  if (!Array.isArray(parts) || parts.length === 0) return `is ${described(parts)}`
  let bytes = 0
  for (const part of parts) {
    if (typeof part !== 'string' || part === '') return `holds ${described(part)}`
    // Before anything reads it: what is counted in bytes is at least as long.
    bytes += part.length > scopeBytesMax ? part.length : Buffer.byteLength(part)
    if (bytes > scopeBytesMax) return `has more than ${scopeBytesMax} bytes`
    const fault = textFault(part)
    if (fault !== undefined) return `holds ${fault}`
  }
  return undefined
}

const plainText = /^[\x01-\x7f]*$/

/**
 * Text that not every store can hold as it is. PostgreSQL has no U+0000, and a lone surrogate has no bytes of its own: two scopes or
 * keys that hold one would become one.
 */
function textFault(text: string): string | undefined {
  if (plainText.test(text)) return undefined
  if (text.includes('\0')) return `U+0000 at character ${text.indexOf('\0') + 1}`
  return hasLoneSurrogate(text) ? 'a lone surrogate, which is not a character' : undefined
}

/** Short, because it goes into logs. */
function described(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40))
  if (Array.isArray(value)) return `a list of ${value.length}`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
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
