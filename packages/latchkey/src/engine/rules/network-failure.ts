/**
 * Did a failed call to another system's API leave this machine? Only errors from before the request could be sent prove that
 * nothing happened there; everything else, known or not, is ambiguous.
 */
import { isError } from '../../ports/errors.ts'

export type NetworkFailure = 'never-left' | 'ambiguous'

/** Name resolution, refused connections, connect timeouts and local address errors, as Node and undici name them. */
const beforeSending = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_NODATA',
  'EAI_NONAME',
  'EADDRNOTAVAIL',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ERR_INVALID_URL',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** The peer's certificate was refused by us: Node writes the request only after this check. */
const certificateRefused = [
  /^ERR_TLS_CERT/,
  /^CERT_/,
  /^UNABLE_TO_/,
  /^DEPTH_ZERO_SELF_SIGNED_CERT$/,
  /^SELF_SIGNED_CERT_IN_CHAIN$/,
  /^HOSTNAME_MISMATCH$/,
]

/**
 * OpenSSL's reasons that only a handshake gives. Others (a wrong version number, a bad record MAC) also come from an answer
 * damaged on its way back, after the other side has acted: measured with a proxy that spoils the reply.
 */
const handshakeReason =
  /(HANDSHAKE_FAILURE|PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_SHARED_CIPHER|NO_CIPHERS_AVAILABLE|NO_PROTOCOLS_AVAILABLE|INSUFFICIENT_SECURITY|UNRECOGNIZED_NAME|NO_APPLICATION_PROTOCOL|UNKNOWN_CA|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(REQUIRED|EXPIRED|REVOKED|UNKNOWN|VERIFY_FAILED))\b/

/** Failures of a connection that was in use: whatever caused them, the request may have left. */
const afterConnecting = new Set([
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

/** Bounds the walk over causes and aggregated errors; real chains are two or three deep. */
const errorsMax = 32

export function classifyNetworkFailure(error: unknown): NetworkFailure {
  const leaves = leavesOf(error)
  return leaves.length > 0 && leaves.every(neverLeft) ? 'never-left' : 'ambiguous'
}

/**
 * The innermost causes. One connection attempt to several addresses fails with an AggregateError of one error each: all of
 * them must prove that nothing left.
 */
function leavesOf(error: unknown): unknown[] {
  const leaves: unknown[] = []
  const open: unknown[] = [error]
  for (let seen = 0; open.length > 0; seen++) {
    if (seen >= errorsMax) return []
    const next = open.pop()
    const inner = innerOf(next)
    if (inner.length === 0) leaves.push(next)
    else open.push(...inner)
  }
  return leaves
}

function innerOf(error: unknown): readonly unknown[] {
  if (isAggregate(error) && error.errors.length > 0) return error.errors
  // An error with a telling code of its own is not explained away by its cause.
  if (!isError(error) || error.cause === undefined || neverLeft(error) || wasConnected(error)) return []
  return [error.cause]
}

function isAggregate(error: unknown): error is AggregateError {
  return error instanceof AggregateError || (isError(error) && error.name === 'AggregateError' && 'errors' in error)
}

function wasConnected(error: Error): boolean {
  return 'code' in error && typeof error.code === 'string' && afterConnecting.has(error.code)
}

function neverLeft(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('code' in error) || typeof error.code !== 'string') return false
  const { code } = error
  if (certificateRefused.some(pattern => pattern.test(code))) return true
  if (code.startsWith('ERR_SSL_')) return handshakeReason.test(code)
  // https reports a handshake that failed with the request waiting as a failed write; the reason is in the message only.
  if (code === 'EPROTO')
    return 'message' in error && handshakeReason.test(String(error.message).toUpperCase().replaceAll(' ', '_'))
  const syscall = 'syscall' in error ? error.syscall : undefined
  // A connect timeout and a read timeout share a code: the failed system call tells them apart.
  if (code === 'ETIMEDOUT') return syscall === 'connect'
  // An open connection may also end with "host unreachable", seen by a read or a write.
  return beforeSending.has(code) && syscall !== 'read' && syscall !== 'write'
}
