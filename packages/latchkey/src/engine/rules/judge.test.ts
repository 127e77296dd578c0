import { describe, expect, it } from 'vitest'
import { notExecuted, outcomeUnknown } from '../../ports/errors.ts'
import type { Attempt } from '../answer.ts'
import { isStoredHeader, judge, type Judgement, readNeverStored, selectStoredHeaders } from './judge.ts'
import { type OperationOptions, settingsOf } from '../options.ts'

type OnFailure = 'hold' | 'rerun' | 'store'

function rules(onFailure: OnFailure, options: OperationOptions = {}) {
  return settingsOf('payments.create', { ...options, onFailure })
}

function answered(status: number, more: { body?: string; error?: unknown } = {}): Attempt {
  const outcome = {
    status,
    headers: [
      ['Location', '/x'],
      ['x-a', 'b'],
    ] as const,
    body: Buffer.from(more.body ?? 'answer'),
    version: 0,
  }
  return { kind: 'answered', outcome, ...('error' in more ? { error: more.error } : {}) }
}
const threw = (error: unknown): Attempt => ({ kind: 'threw', error })

describe('an answer below 500', () => {
  it.each(['hold', 'rerun', 'store'] as const)('is kept with the operation’s version under %s', onFailure => {
    const judgement = judge(answered(201), rules(onFailure, { outcomeVersion: 3 }))
    expect(judgement).toMatchObject({
      kind: 'keep',
      outcome: {
        status: 201,
        version: 3,
        headers: [
          ['Location', '/x'],
          ['x-a', 'b'],
        ],
      },
    })
  })

  it('is kept without its body when that is over the cap, with what helps a client to find the result', () => {
    const cap = rules('hold', { outcomeBytesMax: 5 })
    expect(judge(answered(201, { body: '12345' }), cap)).toMatchObject({ outcome: { body: Buffer.from('12345') } })
    expect(judge(answered(201, { body: '123456' }), cap)).toEqual({
      kind: 'keep',
      outcome: { status: 201, headers: [['Location', '/x']], body: undefined, version: 1 },
    })
  })
})

describe('a 5xx and a throw', () => {
  it('mean unknown under hold', () => {
    expect(judge(answered(502), rules('hold'))).toEqual({ kind: 'unknown', errorCode: 'http-502' })
    expect(judge(threw(new TypeError('x')), rules('hold'))).toEqual({ kind: 'unknown', errorCode: 'TypeError' })
  })

  it('mean another run under rerun', () => {
    expect(judge(answered(502), rules('rerun'))).toEqual({ kind: 'retryable', errorCode: 'http-502' })
    expect(judge(threw(new TypeError('x')), rules('rerun'))).toEqual({ kind: 'retryable', errorCode: 'TypeError' })
  })

  it('are kept under store, a throw without its message', () => {
    expect(judge(answered(502), rules('store'))).toMatchObject({
      kind: 'keep',
      outcome: { status: 502, body: Buffer.from('answer') },
    })
    const judgement = judge(threw(new TypeError('card 4242 of Ann')), rules('store'))
    expect(judgement).toMatchObject({
      kind: 'keep',
      outcome: { status: 500, body: Buffer.from('{"error":"TypeError"}') },
    })
  })

  it('are recorded by a code, never by a message', () => {
    const coded = Object.assign(new Error('card 4242 of Ann'), { code: 'ECONNRESET' })
    expect(judge(threw(coded), rules('hold'))).toEqual({ kind: 'unknown', errorCode: 'ECONNRESET' })
    expect(judge(answered(500, { error: coded }), rules('hold'))).toEqual({ kind: 'unknown', errorCode: 'ECONNRESET' })
    expect(judge(threw('card 4242'), rules('hold'))).toEqual({ kind: 'unknown', errorCode: 'error' })
    expect(judge(threw(undefined), rules('hold'))).toEqual({ kind: 'unknown', errorCode: 'error' })
  })
})

describe('what the handler says', () => {
  const deep = (said: Error) => new Error('outer', { cause: new Error('middle', { cause: said }) })

  it.each(['hold', 'rerun', 'store'] as const)('decides under %s, anywhere in the chain of causes', onFailure => {
    const settings = rules(onFailure)
    expect(judge(threw(notExecuted()), settings)).toMatchObject({ kind: 'retryable' })
    expect(judge(threw(deep(notExecuted(new RangeError('x')))), settings)).toEqual({
      kind: 'retryable',
      errorCode: 'RangeError',
    })
    expect(judge(threw(outcomeUnknown()), settings)).toMatchObject({ kind: 'unknown' })
    expect(judge(threw(deep(outcomeUnknown(new RangeError('x')))), settings)).toEqual({
      kind: 'unknown',
      errorCode: 'RangeError',
    })
  })

  it.each([200, 409, 500])('decides also when the framework made a %d of it', status => {
    expect(judge(answered(status, { error: deep(notExecuted()) }), rules('hold'))).toMatchObject({ kind: 'retryable' })
    expect(judge(answered(status, { error: deep(outcomeUnknown()) }), rules('rerun'))).toMatchObject({
      kind: 'unknown',
    })
  })

  it('ends on a chain that refers to itself', () => {
    const loop = new Error('loop')
    loop.cause = loop
    expect(judge(threw(loop), rules('hold'))).toMatchObject({ kind: 'unknown' })
  })
})

it('remembers that an answer which cannot be replayed has run', () => {
  expect(judge({ kind: 'unreplayable', status: 200, why: 'hijacked' }, rules('hold'))).toEqual({
    kind: 'keep',
    outcome: { status: 200, headers: [], body: undefined, version: 1 },
  })
})

/**
 * The whole table, spelt out. Columns: hold, rerun (atomic work too), store, resume (phased work). Each status is judged as returned
 * and as rendered from a throw: the same.
 */
const table: readonly (readonly [statuses: readonly number[], ...expected: readonly Judgement['kind'][]])[] = [
  [[200, 201, 204, 301, 304, 400, 402, 404, 409, 410, 422, 451], 'keep', 'keep', 'keep', 'keep'],
  [[401, 403, 408, 425, 429], 'keep', 'retryable', 'keep', 'keep'],
  [[500, 502, 503, 504], 'unknown', 'retryable', 'keep', 'retryable'],
]
const columns = ['hold', 'rerun', 'store', 'resume'] as const
const cells = table.flatMap(([statuses, ...expected]) =>
  statuses.flatMap(status =>
    columns.flatMap((onFailure, column) =>
      (['returned', 'thrown'] as const).map(how => [status, how, onFailure, expected[column]] as const),
    ),
  ),
)
const ended = (status: number, how: 'returned' | 'thrown', error: unknown = new Error('a throw')) =>
  how === 'thrown' ? answered(status, { error }) : answered(status)
const judged = (attempt: Attempt, onFailure: (typeof columns)[number], more: Parameters<typeof rules>[1] = {}) =>
  judge(attempt, { ...rules('rerun', more), onFailure })

describe('the table of answers', () => {
  it.each(cells)('judges a %d that was %s, under %s: %s', (status, how, onFailure, expected) => {
    expect(judged(ended(status, how), onFailure).kind).toBe(expected)
  })

  it.each(cells)('asks the handler before the status: %d, %s, under %s', (status, how, onFailure) => {
    const said = (attempt: Attempt) => judge(attempt, { ...rules('rerun'), onFailure }, true)
    expect(said(ended(status, how))).toEqual({ kind: 'retryable', errorCode: 'not-executed' })
    expect(judged(ended(status, 'thrown', notExecuted()), onFailure).kind).toBe('retryable')
    expect(judged(ended(status, 'thrown', outcomeUnknown()), onFailure).kind).toBe('unknown')
    // The more careful of two words holds.
    expect(said(ended(status, 'thrown', outcomeUnknown())).kind).toBe('unknown')
  })

  it.each(cells)('asks the operation before the status: %d, %s, under %s', (status, how, onFailure, expected) => {
    expect(judged(ended(status, how), onFailure, { storeStatus: () => true }).kind).toBe('keep')
    // Refused below 500 is the developer's word that nothing was done. A refused 5xx is everybody's `status < 500`.
    const refused = judged(ended(status, how), onFailure, { storeStatus: () => false }).kind
    expect(refused).toBe(status < 500 ? 'retryable' : expected)
    const broken = () => {
      throw new Error('a hook with a bug')
    }
    expect(judged(ended(status, how), onFailure, { storeStatus: broken }).kind).toBe(expected)
  })

  it.each([
    ['hold', 'unknown'],
    ['rerun', 'retryable'],
    ['store', 'keep'],
    ['resume', 'retryable'],
  ] as const)('takes a throw without an answer for a failure, under %s: %s', (onFailure, expected) => {
    expect(judged(threw(new Error('x')), onFailure).kind).toBe(expected)
    expect(judge(threw(new Error('x')), { ...rules('rerun'), onFailure }, true).kind).toBe('retryable')
  })

  it.each([
    ['hold', 'unknown'],
    ['rerun', 'retryable'],
    ['store', 'keep'],
    ['resume', 'retryable'],
  ] as const)('remembers that an answer which cannot be replayed has run, under %s', (onFailure, failed) => {
    const unreplayable = (status: number): Attempt => ({ kind: 'unreplayable', status, why: 'hijacked' })
    expect(judged(unreplayable(429), onFailure).kind).toBe('keep')
    expect(judged(unreplayable(502), onFailure).kind).toBe(failed)
    expect(judge(unreplayable(200), { ...rules('rerun'), onFailure }, true).kind).toBe('retryable')
  })
})

describe('stored headers', () => {
  it.each([
    ...['Set-Cookie', 'Date', 'Connection', 'Keep-Alive', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade'],
    ...['RateLimit', 'RateLimit-Policy', 'X-RateLimit-Remaining', 'Retry-After', 'Access-Control-Allow-Origin'],
    ...['traceparent', 'X-Request-Id', 'Authorization', 'WWW-Authenticate', 'Proxy-Authenticate', 'Content-Length'],
    ...['Idempotent-Replayed', 'Latchkey-Retry', ':status', 'SET-COOKIE'],
    ...['X-Auth-Token', 'X-Access-Token', 'X-Refresh-Token', 'X-CSRF-Token', 'X-XSRF-Token', 'X-Session-Id'],
    ...['X-Session-Token', 'X-Api-Key', 'DPoP-Nonce', 'Clear-Site-Data', 'Authentication-Info', 'Proxy-Status'],
  ])('leaves %s out', name => {
    expect(isStoredHeader(name)).toBe(false)
  })

  it.each([
    'Location',
    'ETag',
    'Content-Type',
    'Content-Encoding',
    'Link',
    'Vary',
    'Last-Modified',
    'Cache-Control',
    'X-Own',
    'X-Next-Page-Token',
  ])('keeps %s', name => {
    expect(isStoredHeader(name)).toBe(true)
  })

  it('leaves out what the site names, in any case', () => {
    const head = [
      ['x-ticket', '1'],
      ['X-Own', '2'],
    ] as const
    expect(selectStoredHeaders(head, readNeverStored(['X-Ticket']))).toEqual([['X-Own', '2']])
    for (const names of [['x ticket'], [''], [1], 'x-ticket']) {
      expect(readNeverStored(names as string[]), 'past the types').toBeUndefined()
    }
  })

  it('leaves out what the Connection header names, and keeps every value of a repeated name', () => {
    const head = [
      ['Connection', 'close, X-Hop'],
      ['Link', '</a>'],
      ['x-hop', '1'],
      ['connection', 'X-Other'],
      ['X-Other', '1'],
      ['Link', '</b>'],
    ] as const
    expect(selectStoredHeaders(head)).toEqual([
      ['Link', '</a>'],
      ['Link', '</b>'],
    ])
  })
})
