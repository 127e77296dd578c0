/**
 * One sealed value: AES-256-GCM.
 *
 *   format and flags (4 bits each) · [binding, 6 bytes] · key's name with its length · wrapped key with its length (2 bytes) · salt (16) ·
 *   nonce (12) · ciphertext · tag (16)
 *
 * Everything before the salt, the identity and the column are authenticated: a value opens in its own place only. The binding is a number
 * that the reader compares: the fence of an outcome, the position of a step.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { secretBytes } from '../../ports/clock.ts'
import { sealedTextMark } from '../../ports/sealed-marks.ts'
import type { DataKey, Keyring } from './keyring.ts'
import { saltBytes } from './value-keys.ts'

/** Where a value stands. */
export interface Place {
  /** The row's id, or the name of a message. */
  readonly identity: string
  readonly column:
    | 'outcome'
    | 'description'
    | 'input'
    | 'step'
    | 'message'
    | 'downstream-id'
    | 'parked'
    | 'reference'
    | 'proposal'
}

export interface Opened {
  readonly kind: 'opened'
  readonly bytes: Buffer
  /** Undefined: it was not known when the value was written. */
  readonly binding: number | undefined
}

/** A value, so that it does not affect others. */
export interface NotOpened {
  readonly kind: 'unreadable'
  /** For the operator. */
  readonly why: string
}

const format = 0x10
const isBound = 1
const cipherName = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16
const bindingBytes = 6

export interface Value {
  readonly bytes: Uint8Array
  readonly binding?: number | undefined
}

/** At once where the key is at hand. A promise where a KMS has to be asked for it first, as every request would pay for one. */
export function seal(ring: Keyring, place: Place, value: Value): Buffer | Promise<Buffer> {
  const key = ring.writing()
  return key instanceof Promise ? key.then(made => sealUnder(made, place, value)) : sealUnder(key, place, value)
}

function sealUnder(key: DataKey, place: Place, { bytes, binding }: Value): Buffer {
  const head = headOf(key, binding)
  const { salt, key: valueKey } = key.values.writing()
  const nonce = secretBytes(nonceBytes)
  const cipher = createCipheriv(cipherName, valueKey, nonce)
  cipher.setAAD(associated(head, place))
  const sealed = cipher.update(bytes)
  return Buffer.concat([head, salt, nonce, sealed, cipher.final(), cipher.getAuthTag()])
}

/** Rejects with `store-unavailable` when a KMS does not answer. */
export async function open(ring: Keyring, place: Place, sealed: Uint8Array): Promise<Opened | NotOpened> {
  const parts = partsOf(sealed)
  if (parts === undefined) return notOpened('it is not a sealed value of this version')
  const asked = ring.reading(parts.name, parts.wrapped)
  const key = asked instanceof Promise ? await asked : asked
  if (key === undefined)
    return notOpened(`it is sealed under the key ${parts.name}, which encryption.keys does not have`)
  try {
    const valueKey = key.values.reading(parts.salt)
    const decipher = createDecipheriv(cipherName, valueKey, parts.nonce, { authTagLength: tagBytes })
    decipher.setAAD(associated(parts.head, place))
    decipher.setAuthTag(parts.tag)
    const bytes = Buffer.concat([decipher.update(parts.ciphertext), decipher.final()])
    return { kind: 'opened', bytes, binding: parts.binding }
  } catch {
    return notOpened(`its ${place.column} was changed, moved from another row or column, or sealed under another key`)
  }
}

/** The name of the key that a value is sealed under. Undefined: it is not one of ours. */
export function keyNameOf(sealed: Uint8Array): string | undefined {
  return partsOf(sealed)?.name
}

export function notOpened(why: string): NotOpened {
  return { kind: 'unreadable', why }
}

function headOf({ label }: DataKey, binding: number | undefined): Buffer {
  if (binding === undefined) return Buffer.concat([Buffer.from([format]), label])
  const bound = Buffer.alloc(1 + bindingBytes)
  bound[0] = format | isBound
  bound.writeUIntBE(binding, 1, bindingBytes)
  return Buffer.concat([bound, label])
}

interface Parts extends Record<'head' | 'wrapped' | 'salt' | 'nonce' | 'ciphertext' | 'tag', Buffer> {
  readonly name: string
  readonly binding: number | undefined
}

function partsOf(sealed: Uint8Array): Parts | undefined {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
  const flags = bytes[0] ?? 0
  if (flags !== format && flags !== (format | isBound)) return undefined
  const nameAt = 2 + (flags & isBound ? bindingBytes : 0)
  const nameEnd = nameAt + (bytes[nameAt - 1] ?? 0)
  if (nameEnd + 2 > bytes.length) return undefined
  const headEnd = nameEnd + 2 + bytes.readUInt16BE(nameEnd)
  const nonceAt = headEnd + saltBytes
  const textAt = nonceAt + nonceBytes
  const tagAt = bytes.length - tagBytes
  if (textAt > tagAt) return undefined
  return {
    head: bytes.subarray(0, headEnd),
    binding: flags & isBound ? bytes.readUIntBE(1, bindingBytes) : undefined,
    name: bytes.toString('utf8', nameAt, nameEnd),
    wrapped: bytes.subarray(nameEnd + 2, headEnd),
    salt: bytes.subarray(headEnd, nonceAt),
    nonce: bytes.subarray(nonceAt, textAt),
    ciphertext: bytes.subarray(textAt, tagAt),
    tag: bytes.subarray(tagAt),
  }
}

function associated(head: Buffer, { identity, column }: Place): Buffer {
  return Buffer.concat([head, Buffer.from(`${column}:${identity}`)])
}

export async function sealText(ring: Keyring, place: Place, text: string, binding?: number): Promise<string> {
  const sealed = await seal(ring, place, { bytes: Buffer.from(text), binding })
  return sealedTextMark + sealed.toString('base64url')
}

export interface OpenedText {
  readonly kind: 'opened'
  readonly text: string
  readonly binding: number | undefined
}

export async function openText(ring: Keyring, place: Place, text: string): Promise<OpenedText | NotOpened> {
  const sealed = sealedBytesOf(text)
  if (sealed === undefined) return plainText(ring, place, text)
  const opened = await open(ring, place, sealed)
  return opened.kind === 'opened' ? { ...opened, text: opened.bytes.toString() } : opened
}

/** Undefined: the text is plain. */
export function sealedBytesOf(text: string): Buffer | undefined {
  return text.startsWith(sealedTextMark) ? Buffer.from(text.slice(sealedTextMark.length), 'base64url') : undefined
}

function plainText(ring: Keyring, place: Place, text: string): OpenedText | NotOpened {
  return ring.plainValues === 'read' ? { kind: 'opened', text, binding: undefined } : plainRefused(place)
}

export function plainRefused({ column }: Place): NotOpened {
  return notOpened(`its ${column} is not encrypted, and encryption.plainValues is 'refuse'`)
}
