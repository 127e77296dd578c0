/** How old a key or a request is, for operations that refuse what comes after everything about it was forgotten. */
import type { Clock } from '../../ports/clock.ts'
import type { KeyRecord } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, refused, unavailable } from '../answer.ts'
import type { Core } from '../runtime.ts'
import { answerSeen } from './answer-from-row.ts'
import type { Settings } from '../options.ts'

/** Clocks of clients differ; a time further ahead than this is a wrong one, and would outlive every limit. */
const aheadMsMax = 5 * 60_000

export type Age =
  | { readonly kind: 'fine' }
  | { readonly kind: 'too-old' }
  | { readonly kind: 'invalid'; readonly detail: string }

/** By the time that a UUIDv7 carries in its first 48 bits (RFC 9562, section 5.7). */
export function ageOfKey(
  key: string,
  { keyAgeMsMax }: Pick<Settings, 'keyAgeMsMax'>,
  clock: Pick<Clock, 'nowMs'>,
): Age {
  if (keyAgeMsMax === undefined) return { kind: 'fine' }
  const nowMs = clock.nowMs()
  const atMs = timeOfUuid(key)
  if (atMs === undefined) {
    return { kind: 'invalid', detail: 'The key must be a UUID of version 7: its time says how old the request is.' }
  }
  if (atMs - nowMs > aheadMsMax) {
    return {
      kind: 'invalid',
      detail: 'The time in the key is more than 5 minutes ahead: set the clock it is made with.',
    }
  }
  return { kind: nowMs - atMs > keyAgeMsMax ? 'too-old' : 'fine' }
}

const uuidV7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

function timeOfUuid(key: string): number | undefined {
  const [, high, low] = uuidV7.exec(key) ?? []
  return high === undefined || low === undefined ? undefined : Number.parseInt(high + low, 16)
}

/** A request that names no usable time counts as too old: nobody knows that it is not. */
export function isRequestTooOld<C>(
  context: C,
  { requestTime, requestAgeMsMax }: Pick<Settings<C>, 'requestTime' | 'requestAgeMsMax'>,
  clock: Pick<Clock, 'nowMs'>,
): boolean {
  if (requestTime === undefined || requestAgeMsMax === undefined) return false
  const ageMs = clock.nowMs() - timeOf(requestTime, context)
  return !(ageMs <= requestAgeMsMax && ageMs >= -aheadMsMax)
}

function timeOf<C>(requestTime: (context: C) => number | Date | undefined, context: C): number {
  try {
    return Number(requestTime(context))
  } catch {
    return Number.NaN
  }
}

/** A row that changes between two looks changes rarely more often than this. */
const looksMax = 5

interface Aged {
  readonly request: ExecuteRequest
  /** What becomes of a request that may go on. */
  readonly next: (request: ExecuteRequest) => Promise<Answer>
}

/**
 * Too old is decided before anything is reserved: what has a row is answered from it as always, or goes on; what has none, or
 * one that proves that nothing happened, is refused. So the refusal of today never becomes the double of tomorrow.
 */
export function unlessTooOld<Tx, C>(core: Core<Tx>, settings: Settings<C>, aged: Aged): Promise<Answer> {
  return aged.request.tooOld === true ? lookFirst(core, settings, aged) : aged.next(aged.request)
}

async function lookFirst<Tx, C>(core: Core<Tx>, settings: Settings<C>, { request, next }: Aged): Promise<Answer> {
  for (let look = 0; look < looksMax; look++) {
    const { id } = request.identity
    const read = await core.calls.call('read', () => core.store.read(id)).catch((cause: unknown) => ({ cause }))
    if (read !== undefined && 'cause' in read) return unavailable(read.cause)
    if (read === undefined || !isAlive(read)) return refused('key-too-old')
    // Not at its end, so nothing takes it away: whoever claims it goes on with it, and begins nothing.
    if (read.state !== 'completed') return next(request)
    const seen = await answerSeen(core, settings, { record: read, request })
    if (seen.kind === 'answer') return seen.answer
    request = seen.request
  }
  return refused('in-progress', { retryAfterMs: 1_000 })
}

function isAlive({ expired, state, recovery, parked }: KeyRecord): boolean {
  if (expired) return false
  // Phased work that failed for now is not over: a worker goes on with it, whatever its client hears.
  return state !== 'failed_retryable' || parked || recovery === 'resume'
}
