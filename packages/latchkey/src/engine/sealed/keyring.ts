/**
 * The keys that seal and open values: bytes of your own, or data keys that a KMS has wrapped. The current key writes, all of them read.
 * A value names its key, and carries the wrapped data key where there is one, so that it can be opened without asking anything else.
 */
import { createHmac, createSecretKey, hash } from 'node:crypto'
import { type Clock, secretBytes } from '../../ports/clock.ts'
import { errorText, LatchkeyError, misconfigured } from '../../ports/errors.ts'
import { ValueKeys } from './value-keys.ts'

/** A key-management service. Both functions may be called again at any time, and must be bounded in time by you. */
export interface Kms {
  /** Encrypts a data key of 32 bytes under the service's key. At most 4,096 bytes come back. */
  wrap(dataKey: Uint8Array): Promise<Uint8Array>
  /** The data key again. */
  unwrap(wrapped: Uint8Array): Promise<Uint8Array>
}

export interface EncryptionOptions {
  /**
   * By a name of your own, which stands in every value: 1 to 64 letters, digits, '.', '_' or '-'. A key is 32 random bytes, or a KMS. Keep an
   * old one until `rewrap` has finished.
   */
  readonly keys: Readonly<Record<string, Uint8Array | Kms>>
  /** The name of the key that writes. */
  readonly current: string
  /**
   * 32 random bytes that hash references and aggregates, by which messages are recognised. Never change it: what was stored under another one is not
   * recognised any more.
   */
  readonly indexKey: Uint8Array
  /**
   * What was stored before encryption was switched on: `read` (default), or `refuse` once `rewrap` has finished, so that nobody who can
   * write to the database can plant a value.
   */
  readonly plainValues?: 'read' | 'refuse'
}

/** One key that values are sealed under. */
export interface DataKey {
  /** The bytes that name it in a value: its name, and the wrapped data key. */
  readonly label: Buffer
  readonly values: ValueKeys
}

export interface Keyring {
  /** The key that writes now. */
  writing(): DataKey | Promise<DataKey>
  /** Undefined: there is no key of this name. Rejects with `store-unavailable` when the KMS did not unwrap it. */
  reading(name: string, wrapped: Buffer): DataKey | undefined | Promise<DataKey>
  readonly current: string
  readonly plainValues: 'read' | 'refuse'
  /** A keyed hash of a reference: the same for the same words, and of no use without the key. */
  indexOf(...words: readonly string[]): string
}

export const keyBytes = 32
/** Each is 32 bytes and its wrapped form. A process reads values of as many data keys as processes wrote in the retention. */
const unwrappedMax = 1_000
/** After this a process asks for a new data key: few enough calls to a KMS, and few enough values under one key. */
const dataKeyMs = 3_600_000
const wrappedBytesMax = 4_096

export function createKeyring(options: EncryptionOptions, clock: Clock): Keyring {
  checkKeys(options)
  const { keys, current, plainValues = 'read' } = options
  const index = createSecretKey(extract(options.indexKey, 'index'))
  const rings = new Map(Object.entries(keys).map(([name, key]) => [name, ringOf(name, key, clock)]))
  // Checked with the options: it is one of them.
  const writer = rings.get(current) as OneKey
  return {
    current,
    plainValues,
    writing: () => writer.writing(),
    reading: (name, wrapped) => rings.get(name)?.reading(wrapped),
    indexOf: (...words) =>
      createHmac('sha256', index)
        .update(words.map(word => `${Buffer.byteLength(word)}:${word}`).join(''))
        .digest('base64url'),
  }
}

function checkKeys({ keys, current, indexKey }: EncryptionOptions): void {
  for (const [name, value] of Object.entries({ keys, current, indexKey }))
    if (value === undefined) throw misconfigured(`createLatchkey: encryption needs ${name}`)
  const bad = Object.keys(keys).find(name => !/^[A-Za-z0-9._-]{1,64}$/.test(name))
  if (bad !== undefined)
    throw misconfigured(
      `createLatchkey: a name in encryption.keys must be 1 to 64 letters, digits, '.', '_' or '-' (got ${JSON.stringify(bad)})`,
    )
  if (Object.hasOwn(keys, current)) return
  throw misconfigured(`createLatchkey: encryption.current must be a name in encryption.keys (got '${current}')`)
}

interface OneKey {
  writing(): DataKey | Promise<DataKey>
  reading(wrapped: Buffer): DataKey | undefined | Promise<DataKey>
}

function ringOf(name: string, key: Uint8Array | Kms, clock: Clock): OneKey {
  return key instanceof Uint8Array ? staticKey(name, key) : wrappedKeys(name, key, clock)
}

function staticKey(name: string, bytes: Uint8Array): OneKey {
  const key = dataKeyOf(name, bytes, Buffer.alloc(0))
  // A value that carries a wrapped key was not sealed under this one.
  return { writing: () => key, reading: wrapped => (wrapped.length === 0 ? key : undefined) }
}

function wrappedKeys(name: string, kms: Kms, clock: Clock): OneKey {
  const known = new Map<string, DataKey | Promise<DataKey>>()
  let writing: { readonly key: DataKey | Promise<DataKey>; readonly untilMs: number } | undefined

  function remember(id: string, key: DataKey): void {
    known.set(id, key)
    // The one that was not used for the longest time is the first: a hit moves its key to the end.
    const [oldest] = known.keys()
    if (known.size > unwrappedMax && oldest !== undefined) known.delete(oldest)
  }

  async function create(): Promise<DataKey> {
    const bytes = secretBytes(keyBytes)
    const wrapped = Buffer.from(await ask(name, 'wrap', () => kms.wrap(bytes)))
    if (wrapped.length === 0 || wrapped.length > wrappedBytesMax)
      throw unavailable(name, 'wrap', `it returned ${wrapped.length} bytes, not 1 to ${wrappedBytesMax}`)
    const key = dataKeyOf(name, bytes, wrapped)
    remember(idOf(wrapped), key)
    return key
  }

  async function unwrap(id: string, wrapped: Buffer): Promise<DataKey> {
    try {
      const bytes = await ask(name, 'unwrap', () => kms.unwrap(wrapped))
      if (bytes.length !== keyBytes) throw unavailable(name, 'unwrap', `it returned ${bytes.length} bytes, not 32`)
      const key = dataKeyOf(name, bytes, wrapped)
      known.delete(id)
      remember(id, key)
      return key
    } catch (error) {
      known.delete(id)
      throw error
    }
  }

  return {
    writing() {
      if (writing !== undefined && clock.monotonicMs() < writing.untilMs) return writing.key
      const key = create()
      const held = { key, untilMs: clock.monotonicMs() + dataKeyMs }
      writing = held
      key.then(
        made => (writing = writing === held ? { ...held, key: made } : writing),
        // The next call asks again.
        () => (writing = writing === held ? undefined : writing),
      )
      return key
    },
    reading(wrapped) {
      if (wrapped.length === 0) return undefined
      const id = idOf(wrapped)
      const found = known.get(id)
      if (found === undefined) {
        const asked = unwrap(id, Buffer.from(wrapped))
        // Concurrent readers of one key ask once.
        known.set(id, asked)
        return asked
      }
      known.delete(id)
      known.set(id, found)
      return found
    },
  }
}

function idOf(wrapped: Buffer): string {
  return hash('sha256', wrapped, 'base64url')
}

async function ask(name: string, what: 'wrap' | 'unwrap', call: () => Promise<Uint8Array>): Promise<Uint8Array> {
  try {
    const bytes = await call()
    if (bytes instanceof Uint8Array) return bytes
  } catch (error) {
    throw unavailable(name, what, errorText(error), error)
  }
  throw unavailable(name, what, 'it returned no bytes')
}

function unavailable(name: string, what: 'wrap' | 'unwrap', why: string, cause?: unknown): LatchkeyError {
  const message = `${what} of encryption.keys.${name} failed: ${why}. Check the KMS and the rights on its key`
  // A key is wrapped before anything is sent to the store, and unwrapped after its answer.
  return new LatchkeyError('store-unavailable', message, { cause, sent: what === 'wrap' ? false : undefined })
}

function dataKeyOf(name: string, bytes: Uint8Array, wrapped: Buffer): DataKey {
  const head = Buffer.from([Buffer.byteLength(name), ...Buffer.from(name)])
  const size = Buffer.alloc(2)
  size.writeUInt16BE(wrapped.length)
  return {
    label: Buffer.concat([head, size, wrapped]),
    values: new ValueKeys(createSecretKey(extract(bytes, 'values'))),
  }
}

/** HKDF-Extract of RFC 5869, once for each key; value-keys.ts is the other half. */
function extract(key: Uint8Array, purpose: string): Buffer {
  return createHmac('sha256', `latchkey.sealed.v1.${purpose}`).update(key).digest()
}
