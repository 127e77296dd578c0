/**
 * Values inside a statement's text, for messages of several statements, which take no parameters. All of it is digits and
 * hexadecimal: whatever the bytes are, nothing in them can end a literal, and no setting of the session reads them otherwise.
 */
import { LatchkeyError } from '../../ports/errors.ts'
import { isUuid } from './binary-array.ts'

export function uuidLiteral(id: string): string {
  if (!isUuid(id)) throw new LatchkeyError('invariant', `${JSON.stringify(id)} is no uuid`)
  return `'${id}'::uuid`
}

export function bytesLiteral(bytes: Uint8Array): string {
  return `decode('${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}', 'hex')`
}

export function textLiteral(text: string | null): string {
  return text === null ? 'null' : `convert_from(${bytesLiteral(Buffer.from(text))}, 'UTF8')`
}

export function numberLiteral(value: number): string {
  if (!Number.isFinite(value)) throw new LatchkeyError('invariant', `${value} is no number to be stored`)
  return `'${value}'::float8`
}
