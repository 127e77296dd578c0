/** What a handler is given beside its request. */
import { createHash } from 'node:crypto'
import { uuidText } from '../ports/clock.ts'
import { lengthPrefixed } from './identity.ts'

export interface Execution {
  /** The row's. Put it into the provider's metadata where there is such a place: a webhook that brings it back finds the row. */
  readonly id: string
  readonly key: string
  readonly scope: string
  readonly operation: string
  /** 1 for the first run, rising with every grant of the row. */
  readonly attempt: number
  readonly fence: number
  /** Aborted when the claim is lost or held for longer than the maximum: stop, the answer may be refused. */
  readonly signal: AbortSignal
  /**
   * The idempotency key for a call to somebody else's API: the same for every attempt of this identity, also after the row
   * expired or was lost. `uuid` (default) or 43 URL-safe characters.
   */
  downstreamKey(effect: string, shape?: 'uuid' | 'opaque'): string
  /**
   * Say it before answering: nothing was done, so the key is free for a retry, whatever the answer is and whatever `onFailure` says.
   * For an answer such as 429 that comes before the first effect. In an atomic operation it also rolls back.
   */
  notExecuted(): void
}

/** Where an execution remembers that its handler said `notExecuted()`. */
export const saidNotExecuted: unique symbol = Symbol('latchkey: not executed')

/** An execution as the engine sees it. */
export interface Listening {
  [saidNotExecuted]: boolean
}

export type GuardedExecution = Execution

export interface AtomicExecution<Tx> extends Execution {
  /** Everything written through it commits together with the key and the answer, or not at all. */
  readonly tx: Tx
}

/** Hash of (identity, effect name, epoch). The epoch rises only with recorded negative evidence; until then it is 0. */
export function downstreamKey(id: string, effect: string, shape: 'uuid' | 'opaque' = 'uuid', epoch = 0): string {
  const digest = createHash('sha256')
    .update(lengthPrefixed(['latchkey.downstream.v1', id, effect, String(epoch)]))
    .digest()
  return shape === 'uuid' ? uuidText(digest) : digest.toString('base64url')
}
