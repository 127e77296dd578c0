import { describe, expect, it } from 'vitest'
import { notExecuted, outcomeUnknown } from '../ports/errors.ts'
import type { Attempt } from './answer.ts'
import { judge } from './judge.ts'
import { type OperationOptions, settingsOf } from './settings.ts'

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

  it.each(['hold', 'rerun', 'store'] as const)('leaves the key free when it says not now, under %s too', onFailure => {
    expect(judge(answered(429), rules(onFailure))).toEqual({ kind: 'retryable', errorCode: 'http-429' })
  })

  it('is kept as the operation’s storeWhen says', () => {
    const storeWhen = (status: number) => status === 429
    expect(judge(answered(429), rules('hold', { storeWhen }))).toMatchObject({ kind: 'keep' })
    expect(judge(answered(200), rules('hold', { storeWhen }))).toEqual({ kind: 'retryable', errorCode: 'http-200' })
  })

  it('is kept by default when storeWhen throws: the handler has run', () => {
    const storeWhen = () => {
      throw new Error('a hook with a bug')
    }
    expect(judge(answered(201), rules('hold', { storeWhen }))).toMatchObject({ kind: 'keep' })
    expect(judge(answered(429), rules('hold', { storeWhen }))).toMatchObject({ kind: 'retryable' })
    expect(judge(answered(500), rules('hold', { storeWhen }))).toMatchObject({ kind: 'unknown' })
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

it('takes a throw that is rendered as "not now" for a failure, and the same answer returned for a refusal', () => {
  const outcome = { status: 429, headers: [], body: new Uint8Array(), version: 0 }
  const thrown = { kind: 'answered', outcome, error: new Error('the provider is busy') } as const
  expect(judge(thrown, rules('hold')).kind).toBe('unknown')
  expect(judge(thrown, rules('rerun')).kind).toBe('retryable')
  expect(judge({ kind: 'answered', outcome }, rules('hold')).kind).toBe('retryable')
})
