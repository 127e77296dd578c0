/** The problems that Latchkey answers with: what varies in each, and the table of their statuses and texts. */

/** Why a key field is refused. */
export type KeyFieldFault = 'malformed' | 'wrong-type' | 'empty' | 'too-long' | 'too-short' | 'format'

/** The parts of a request that can differ under one key. */
export type RequestPart = 'method' | 'path' | 'query' | 'body' | 'headers'

/** What the limit of a body counts: its bytes, or how deeply its arrays and objects are nested. */
export type BodyUnit = 'bytes' | 'levels'

/** Every answer that Latchkey makes itself, with what varies in it. */
export type Problem =
  /** `header`: where the key is expected. Default `Idempotency-Key`; null: elsewhere in the request. */
  | { code: 'missing-key'; header?: string | null }
  | { code: 'invalid-key'; reason: KeyFieldFault; detail: string }
  | { code: 'scope-unresolved' }
  | { code: 'key-reused'; differing: readonly RequestPart[] }
  | { code: 'in-progress'; retryAfterMs: number }
  | { code: 'outcome-unknown'; attempt: 'own' | 'earlier'; retryAfterMs: number }
  | { code: 'response-not-stored'; originalStatus: number; location?: string; etag?: string }
  | { code: 'store-unavailable'; retryAfterMs: number; about?: 'request' | 'request-in-doubt' | 'status' }
  | { code: 'overloaded'; retryAfterMs: number }
  | { code: 'limit-exceeded'; retryAfterMs: number }
  | { code: 'row-unreadable'; retryAfterMs: number }
  | { code: 'transaction-rolled-back' }
  | { code: 'fingerprint-version'; retryAfterMs: number }
  | { code: 'body-unreadable' }
  | { code: 'body-too-large'; max: number; unit: BodyUnit }
  | { code: 'body-unsupported' }
  | { code: 'parked'; retryAfterMs?: number }
  | { code: 'replay-not-authorized' }
  | { code: 'key-expired' }
  | { code: 'key-too-old' }
  | { code: 'no-such-operation' }
  | { code: 'deadline-passed' }

export type ProblemCode = Problem['code']

/** Whether sending the same request with the same key again can help. For clients that do not read bodies. */
export type RetryAdvice = 'later' | 'no'

export interface ProblemKind {
  status: number
  title: string
  detail: string
  retry: RetryAdvice
}

/** The table of codes. Titles are constant per code, as RFC 9457, section 3.1.3, asks; details may be replaced. */
export const problemKinds: { readonly [Code in ProblemCode]: ProblemKind } = {
  'missing-key': {
    status: 400,
    title: 'Idempotency key missing',
    detail:
      'This operation requires an idempotency key, with a new key for each new request. Its documentation says where to ' +
      'send it.',
    retry: 'no',
  },
  'invalid-key': {
    status: 400,
    title: 'Idempotency key invalid',
    detail: 'The request does not contain exactly one valid idempotency key.',
    retry: 'no',
  },
  'scope-unresolved': {
    status: 500,
    title: 'Caller not resolved',
    detail: 'The server could not determine whose key this is. The request was not executed.',
    // The cause may be a temporary failure, and nothing ran.
    retry: 'later',
  },
  'key-reused': {
    status: 422,
    title: 'Idempotency key reused',
    detail: 'This key was used before with a different request. The request was not executed. Use a new key for it.',
    retry: 'no',
  },
  'in-progress': {
    status: 409,
    title: 'Request in progress',
    detail: 'A request with this key is still being executed. Send it again later, unchanged and with the same key.',
    retry: 'later',
  },
  'outcome-unknown': {
    status: 409,
    title: 'Outcome unknown',
    detail:
      'A request with this key may or may not have taken effect, and the server is finding out. It was not executed ' +
      'again. Send it again later, unchanged and with the same key; a new key could make it happen twice.',
    retry: 'later',
  },
  'response-not-stored': {
    status: 410,
    title: 'Response not stored',
    detail:
      'The request with this key was executed, but its response was too large, or is confidential, and was not stored. It is not ' +
      'executed again.',
    retry: 'no',
  },
  'store-unavailable': {
    status: 503,
    title: 'Idempotency store unavailable',
    detail:
      'The server cannot reach its idempotency store. The request was not executed. What an earlier request with the ' +
      'same key did is not known. Send it again later, unchanged and with the same key.',
    retry: 'later',
  },
  overloaded: {
    status: 503,
    title: 'Server overloaded',
    detail: 'Too many requests are waiting for the idempotency store. The request was not executed.',
    retry: 'later',
  },
  'limit-exceeded': {
    status: 429,
    title: 'Too many requests',
    detail:
      'This caller has sent more requests of this kind than it may, or too many of its requests are unfinished or ' +
      'stored. The request was not executed. Send it again later, unchanged and with the same key.',
    retry: 'later',
  },
  'row-unreadable': {
    status: 503,
    title: 'Stored record not readable',
    detail:
      'This server cannot read the record that is stored for this key. This request executed nothing. The operator of ' +
      'the server must act first; a new key could make it happen twice.',
    retry: 'later',
  },
  // The developer's mistake and its fix are in the report, not in the client's answer.
  'transaction-rolled-back': {
    status: 500,
    title: 'Request rolled back',
    detail: 'The server failed during the request and rolled it back. None of it took effect.',
    retry: 'later',
  },
  'fingerprint-version': {
    status: 503,
    title: 'Fingerprint of a newer version',
    detail:
      'A newer version of this server recorded the key, and this process cannot compare the request with that record.',
    retry: 'later',
  },
  'body-unreadable': {
    status: 500,
    title: 'Request body not available',
    detail: 'The request body was consumed before it could be compared. The request was not executed.',
    retry: 'no',
  },
  'body-too-large': {
    status: 413,
    title: 'Request body too large',
    detail: 'The request body exceeds the limit of this operation. The request was not executed.',
    retry: 'no',
  },
  'body-unsupported': {
    status: 415,
    title: 'Request body not supported',
    detail:
      'A body of this media type, or with these values, cannot be compared exactly with an earlier one. The request ' +
      'was not executed.',
    retry: 'no',
  },
  parked: {
    status: 409,
    title: 'Request waiting for an operator',
    detail: 'The request with this key was stopped and waits for an operator. It is not executed again until then.',
    retry: 'later',
  },
  'replay-not-authorized': {
    status: 403,
    title: 'Replay not authorized',
    detail: 'This caller may not see the response that is stored for this key. The request was not executed.',
    retry: 'no',
  },
  'key-expired': {
    status: 410,
    title: 'Idempotency key expired',
    detail: 'The request with this key was executed, and its response is no longer stored. It is not executed again.',
    retry: 'no',
  },
  'key-too-old': {
    status: 400,
    title: 'Idempotency key too old',
    detail:
      'The key or the request is older than this operation accepts, and no response is stored for it. It may have been ' +
      'executed long ago; it was not executed now. Check whether it took effect before you use a new key.',
    retry: 'no',
  },
  'no-such-operation': {
    status: 404,
    title: 'No such operation',
    detail: 'There is no operation at this address that this caller may see.',
    retry: 'no',
  },
  // The worker that finds the work too late stores this with the row.
  'deadline-passed': {
    status: 408,
    title: 'Deadline passed',
    detail: 'The work did not start before its deadline. None of it was or will be done. Use a new key.',
    retry: 'no',
  },
}
