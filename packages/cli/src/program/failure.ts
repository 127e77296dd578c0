/** What an error that nobody caught means to the shell. */
import { isLatchkeyError } from 'latchkey'
import { CliError, type Exit, exits } from './exit.ts'

export interface Failure {
  readonly exit: Exit
  readonly code: string
  readonly message: string
}

export function failureOf(error: unknown): Failure {
  if (error instanceof CliError) return { exit: error.exit, code: error.code, message: error.message }
  if (isLatchkeyError(error)) return { exit: exitOf(error.code), code: error.code, message: error.message }
  if (isUnreachable(error)) return { exit: exits.unreachable, code: 'unreachable', message: textOf(error) }
  return { exit: exits.no, code: 'error', message: textOf(error) }
}

function exitOf(code: string): Exit {
  if (code === 'misconfigured' || code === 'scope-unresolved' || code === 'invalid-key') return exits.usage
  return code.startsWith('store-') || code === 'overloaded' ? exits.unreachable : exits.no
}

const networkCodes = /^(?:ECONN|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EPIPE|UND_ERR_|CERT_|ERR_TLS|ERR_SSL)/

function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error ? String(error.code) : ''
  // The classes of PostgreSQL for connections and for a server that is shutting down.
  return networkCodes.test(code) || /^(?:08|28|3D|57P)/.test(code) || isUnreachable(error.cause)
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // Several addresses were tried: an AggregateError has no text of its own.
  const own = error.message || (error instanceof AggregateError ? error.errors.map(textOf).join('; ') : error.name)
  return error.cause instanceof Error ? `${own}: ${textOf(error.cause)}` : own
}
