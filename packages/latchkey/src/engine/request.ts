/** The one place that builds an ExecuteRequest: HTTP and `operation.run` hand in its parts. */
import type { Clock } from '../ports/clock.ts'
import type { Identity } from '../ports/store.ts'
import type { ExecuteRequest } from './answer.ts'
import { identify, type Scope } from './identity.ts'
import type { Settings } from './options.ts'
import { type Age, ageOfKey, isTooOld } from './rules/age.ts'

/** An operation, as far as its requests need it. */
export interface RequestOwner<C> {
  readonly name: string
  readonly settings: Settings<C>
}

export interface RequestParts extends Pick<ExecuteRequest, 'identity' | 'key' | 'fingerprint' | 'authorizeReplay'> {
  readonly isTooOld?: boolean
  /** For `describe`, which is called with its result. Absent: the row is not described. */
  readonly input?: (() => unknown) | undefined
}

export function executeRequest<C>({ describe }: Settings<C>, parts: RequestParts): ExecuteRequest {
  const { identity, key, fingerprint, authorizeReplay, isTooOld = false, input } = parts
  const description = describe === undefined || input === undefined ? undefined : describedBy(describe, input())
  return { identity, key, tooOld: isTooOld, fingerprint, description, authorizeReplay }
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
    return describe(input).slice(0, descriptionCharactersMax)
  } catch {
    return undefined
  }
}
