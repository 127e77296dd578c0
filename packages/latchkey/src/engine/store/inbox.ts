/** What an inbox needs of its Latchkey: parked messages, through calls that are bounded as any other, and attempts that leave no row by themselves. */
import { misconfigured } from '../../ports/errors.ts'
import type { ParkedInbox } from '../../ports/faculties/inbox.ts'
import type { ExecuteRequest } from '../answer.ts'
import { type Settings, tombstoneOf } from '../options.ts'
import { claimToRecord } from '../run/claim.ts'
import type { Core } from '../runtime.ts'

export interface FailedAttempt {
  readonly request: ExecuteRequest
  readonly settings: Pick<Settings, 'leaseMs' | 'holdMsMax' | 'retentionMs' | 'onExpiry' | 'tombstoneMs'>
  /** For operators. */
  readonly errorCode: string
}

export interface InboxHost {
  /** Throws where the store has no inbox. `owner`: who asks. */
  require(owner: string): void
  /** Rejects with `store-unavailable` or `overloaded`, as every call of the store does. */
  call<T>(run: (parked: ParkedInbox) => Promise<T>): Promise<T>
  /**
   * An atomic attempt was rolled back, and its row with it. This leaves a row that is free for a retry, and counts. Returns how often it was tried;
   * undefined: another caller has the row, so that this attempt is not counted. Rejects as `call` does.
   */
  countFailure(failed: FailedAttempt): Promise<number | undefined>
  /** How often the row was tried. Rejects as `call` does. */
  attemptsOf(rowId: string): Promise<number>
  /** `close` was called. */
  isClosed(): boolean
}

export function inboxHost<Tx>(core: Core<Tx>): InboxHost {
  const { store, calls, draining } = core
  function inboxOf(owner: string): ParkedInbox {
    if (store.inbox !== undefined) return store.inbox
    throw misconfigured(
      `${owner}: the ${store.name} store has no inbox (traits.faculties), so that a message could not be parked. Use postgresStore or sqliteStore`,
    )
  }
  return {
    require: owner => void inboxOf(owner),
    call: run => calls.call('inbox', () => run(inboxOf('inbox'))),
    countFailure: failed => countFailure(core, failed),
    attemptsOf: async id => (await calls.call('read', () => store.read(id)))?.attempts ?? 0,
    isClosed: () => draining.signal.aborted,
  }
}

async function countFailure<Tx>(
  core: Core<Tx>,
  { request, settings, errorCode }: FailedAttempt,
): Promise<number | undefined> {
  const { identity, fingerprint, description } = request
  const { leaseMs, holdMsMax, retentionMs } = settings
  const claimed = await claimToRecord(core, {
    ...{ identity, fingerprint, description, leaseMs },
    claimId: core.clock.randomId(),
    // A process that dies before the next line leaves a row that anyone may run again.
    recovery: 'rerun',
    expiresInMs: holdMsMax + retentionMs,
    tombstoneMs: tombstoneOf(settings),
  })
  if (claimed.kind === 'unavailable') throw claimed.cause
  if (claimed.kind === 'seen') return undefined
  const failure = { to: 'failed_retryable', errorCode, dueInMs: 0 } as const
  await core.calls.call('fail', () => core.store.fail(claimed.claim, failure))
  return claimed.attempt
}
