/** What scripts return, read with the types that they are known to have. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { Reply } from '../../shared/redis/driver.ts'

export function listOf(reply: Reply | undefined): readonly Reply[] {
  if (Array.isArray(reply)) return reply
  throw unexpected('a list', reply)
}

export function bytesOf(reply: Reply | undefined): Buffer {
  if (Buffer.isBuffer(reply)) return reply
  throw unexpected('bytes', reply)
}

export function textOf(reply: Reply | undefined): string {
  return bytesOf(reply).toString()
}

/** A number that a script returns is an integer; one that it has read from a hash is text. */
export function numberOf(reply: Reply | undefined): number {
  return typeof reply === 'number' ? reply : Number(textOf(reply))
}

export function isNil(reply: Reply | undefined): reply is null | undefined {
  return reply === null || reply === undefined
}

export function textOrNull(reply: Reply | undefined): string | null {
  return isNil(reply) ? null : textOf(reply)
}

export function textOrUndefined(reply: Reply | undefined): string | undefined {
  return isNil(reply) ? undefined : textOf(reply)
}

function unexpected(wanted: string, reply: unknown): LatchkeyError {
  const got = reply === undefined ? 'nothing' : typeof reply
  return new LatchkeyError(
    'invariant',
    `a script of Latchkey returned ${got} instead of ${wanted}: does a proxy or a client option change replies?`,
  )
}
