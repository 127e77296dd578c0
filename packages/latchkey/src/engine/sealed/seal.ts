/**
 * One sealed value: AES-256-GCM under a key of its row.
 *
 *   format and flags (4 bits each) · [binding, 6 bytes] · key's name with its length · wrapped key with its length (2 bytes) · nonce (12) ·
 *   ciphertext · tag (16)
 *
 * The key of a row is expanded by HKDF from the data key and the row's identity: one row holds a few dozen values, so that random nonces never
 * run out. Everything before the nonce, the identity and the column are authenticated: a value opens in its own place only. The binding
 * is a number that the reader compares: the fence of an outcome, the position of a step.
 */
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import { secretBytes } from '../../ports/clock.ts'
import { sealedTextMark } from '../../ports/sealed-marks.ts'
import type { DataKey, Keyring } from './keyring.ts'

/** Where a value stands. */
export interface Place {
  /** The row's id, or the name of a message. */
  readonly identity: string
  readonly column: 'outcome' | 'description' | 'input' | 'step' | 'message' | 'downstream-id'
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

export async function seal(
  ring: Keyring,
  place: Place,
  { bytes, binding }: { readonly bytes: Uint8Array; readonly binding?: number | undefined },
): Promise<Buffer> {
  const asked = ring.writing()
  const key = asked instanceof Promise ? await asked : asked
  const head = headOf(key, binding)
  const nonce = secretBytes(nonceBytes)
  const cipher = createCipheriv(cipherName, expand(key, place.identity), nonce)
  cipher.setAAD(associated(head, place))
  const sealed = cipher.update(bytes)
  return Buffer.concat([head, nonce, sealed, cipher.final(), cipher.getAuthTag()])
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
    const decipher = createDecipheriv(cipherName, expand(key, place.identity), parts.nonce, { authTagLength: tagBytes })
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

interface Parts extends Record<'head' | 'wrapped' | 'nonce' | 'ciphertext' | 'tag', Buffer> {
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
  const tagAt = bytes.length - tagBytes
  if (headEnd + nonceBytes > tagAt) return undefined
  return {
    head: bytes.subarray(0, headEnd),
    binding: flags & isBound ? bytes.readUIntBE(1, bindingBytes) : undefined,
    name: bytes.toString('utf8', nameAt, nameEnd),
    wrapped: bytes.subarray(nameEnd + 2, headEnd),
    nonce: bytes.subarray(headEnd, headEnd + nonceBytes),
    ciphertext: bytes.subarray(headEnd + nonceBytes, tagAt),
    tag: bytes.subarray(tagAt),
  }
}

/** HKDF-Expand of RFC 5869 for 32 bytes, which are one block: one HMAC. */
function expand({ extracted }: DataKey, identity: string): Buffer {
  return createHmac('sha256', extracted).update(`row:${identity}\u0001`).digest()
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
