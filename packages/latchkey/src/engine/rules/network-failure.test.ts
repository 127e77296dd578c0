import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { classifyNetworkFailure } from './network-failure.ts'

function failure(code: string, more: { syscall?: string; cause?: unknown; message?: string } = {}): Error {
  const { cause, message = code, ...fields } = more
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { code, ...fields })
}

describe('classifyNetworkFailure', () => {
  it('finds the failed connect inside a chain of causes', () => {
    const inner = failure('ECONNREFUSED', { syscall: 'connect' })
    const chain = new Error('payment failed', { cause: new TypeError('fetch failed', { cause: inner }) })
    expect(classifyNetworkFailure(chain)).toBe('never-left')
  })

  it('needs every address of an AggregateError to have failed before sending', () => {
    const refused = failure('ECONNREFUSED', { syscall: 'connect' })
    const reset = failure('ECONNRESET', { syscall: 'read' })
    expect(classifyNetworkFailure(new AggregateError([refused, refused]))).toBe('never-left')
    expect(classifyNetworkFailure(new AggregateError([refused, reset]))).toBe('ambiguous')
    expect(classifyNetworkFailure(new AggregateError([reset, refused]))).toBe('ambiguous')
    expect(classifyNetworkFailure(new AggregateError([]))).toBe('ambiguous')
  })

  it('looks into an AggregateError that is a cause', () => {
    const both = new AggregateError([failure('ECONNREFUSED'), failure('ETIMEDOUT', { syscall: 'connect' })])
    expect(classifyNetworkFailure(new TypeError('fetch failed', { cause: both }))).toBe('never-left')
  })

  it('knows the errors of another realm, as tests under Jest meet them', () => {
    const inner = runInNewContext(`
      const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED', syscall: 'connect' })
      new TypeError('fetch failed', { cause: new AggregateError([refused, refused]) })`)
    expect(inner).not.toBeInstanceOf(Error)
    expect(classifyNetworkFailure(new Error('payment failed', { cause: inner }))).toBe('never-left')
  })

  it('tells a connect timeout from a read timeout by the system call', () => {
    expect(classifyNetworkFailure(failure('ETIMEDOUT', { syscall: 'connect' }))).toBe('never-left')
    expect(classifyNetworkFailure(failure('ETIMEDOUT', { syscall: 'read' }))).toBe('ambiguous')
    expect(classifyNetworkFailure(failure('ETIMEDOUT'))).toBe('ambiguous')
  })

  it('takes a host that vanished under an open connection as ambiguous', () => {
    expect(classifyNetworkFailure(failure('EHOSTUNREACH', { syscall: 'connect' }))).toBe('never-left')
    expect(classifyNetworkFailure(failure('EHOSTUNREACH', { syscall: 'read' }))).toBe('ambiguous')
    expect(classifyNetworkFailure(failure('ENETUNREACH', { syscall: 'write' }))).toBe('ambiguous')
  })

  it('does not let a cause explain a reset away', () => {
    const retried = failure('ECONNRESET', { cause: failure('ECONNREFUSED', { syscall: 'connect' }) })
    expect(classifyNetworkFailure(retried)).toBe('ambiguous')
    expect(classifyNetworkFailure(failure('UND_ERR_SOCKET', { cause: failure('ECONNREFUSED') }))).toBe('ambiguous')
  })

  it('takes only reasons of the handshake as a proof from TLS', () => {
    expect(classifyNetworkFailure(failure('ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE'))).toBe('never-left')
    expect(classifyNetworkFailure(failure('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'))).toBe('never-left')
    expect(classifyNetworkFailure(failure('ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC'))).toBe('ambiguous')
    expect(classifyNetworkFailure(failure('ERR_SSL_WRONG_VERSION_NUMBER'))).toBe('ambiguous')
    expect(classifyNetworkFailure(failure('EPROTO', { message: 'write EPROTO' }))).toBe('ambiguous')
  })

  it.each([undefined, null, 'ECONNREFUSED', 42, new Error('no code'), new TypeError('fetch failed'), { code: 7 }])(
    'takes what it does not recognise as ambiguous: %s',
    thrown => {
      expect(classifyNetworkFailure(thrown)).toBe('ambiguous')
    },
  )

  it('ends on a chain that refers to itself', () => {
    const first = new Error('first')
    const second = new Error('second', { cause: first })
    first.cause = second
    expect(classifyNetworkFailure(first)).toBe('ambiguous')
  })
})
