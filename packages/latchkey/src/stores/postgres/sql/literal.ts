/**
 * Values inside a statement's text, for messages of several statements, which take no parameters. They consist of digits, hexadecimal
 * and harmless characters: whatever the bytes are, nothing in them can end a literal, and no setting of the session changes their
 * meaning. They have no cast: the function's parameters have types, and a shorter text is parsed faster.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import { isUuid } from './columns.ts'

export function uuidLiteral(id: string): string {
  if (!isUuid(id)) throw new LatchkeyError('invariant', `${JSON.stringify(id)} is not a uuid`)
  return `'${id}'`
}

/** With E, a backslash is an escape whatever the session's settings. */
export function bytesLiteral(bytes: Uint8Array): string {
  return `E'\\\\x${hex(bytes)}'`
}

/** ASCII without quotes, backslashes and control characters. */
const harmless = /^[ !#-&(-[\]-~]*$/

export function textLiteral(text: string | null): string {
  if (text === null) return 'null'
  return harmless.test(text)
    ? `'${text}'`
    : `pg_catalog.convert_from(pg_catalog.decode('${hex(Buffer.from(text))}', 'hex'), 'UTF8')`
}

export function numberLiteral(value: number): string {
  if (!Number.isFinite(value)) throw new LatchkeyError('invariant', `${value} is not a finite number`)
  return `'${value}'`
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}
