/**
 * Values inside a statement's text, for messages of several statements, which take no parameters. All of it is digits, hexadecimal
 * and harmless characters: whatever the bytes are, nothing in them can end a literal, and no setting of the session reads them
 * otherwise. They have no type of their own: the function's parameters have one, and less is to be read.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import { isUuid } from './values.ts'

export function uuidLiteral(id: string): string {
  if (!isUuid(id)) throw new LatchkeyError('invariant', `${JSON.stringify(id)} is no uuid`)
  return `'${id}'`
}

/** With E, a backslash is an escape whatever the session says. */
export function bytesLiteral(bytes: Uint8Array): string {
  return `E'\\\\x${hex(bytes)}'`
}

/** ASCII without quotes, backslashes and what cannot be seen. */
const harmless = /^[ !#-&(-[\]-~]*$/

export function textLiteral(text: string | null): string {
  if (text === null) return 'null'
  return harmless.test(text)
    ? `'${text}'`
    : `pg_catalog.convert_from(pg_catalog.decode('${hex(Buffer.from(text))}', 'hex'), 'UTF8')`
}

export function numberLiteral(value: number): string {
  if (!Number.isFinite(value)) throw new LatchkeyError('invariant', `${value} is no number to be stored`)
  return `'${value}'`
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}
