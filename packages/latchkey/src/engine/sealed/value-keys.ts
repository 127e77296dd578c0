/**
 * The keys under which values are encrypted. Each is expanded from a data key and a salt by HKDF: random nonces would run out under one key
 * for ever, and a key for every value costs as much as the encryption.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { secretBytes } from '../../ports/clock.ts'

export const saltBytes = 16
/** At this number, the chance that two values share a nonce of 12 bytes is one in 2^49. */
const valuesPerSalt = 2 ** 24
/** A process reads values with as many salts as processes wrote in the retention. */
const knownMax = 1_000

export interface SaltedKey {
  readonly salt: Buffer
  readonly key: KeyObject
}

export class ValueKeys {
  /** The extracted key of HKDF. */
  readonly #extracted: KeyObject
  readonly #known = new Map<string, KeyObject>()
  readonly #valuesMax: number
  #writing: SaltedKey | undefined
  #written = 0

  constructor(extracted: KeyObject, valuesMax: number = valuesPerSalt) {
    this.#extracted = extracted
    this.#valuesMax = valuesMax
  }

  /** For one value. */
  writing(): SaltedKey {
    if (this.#writing === undefined || this.#written >= this.#valuesMax) {
      const salt = secretBytes(saltBytes)
      this.#writing = { salt, key: this.#expand(salt) }
      this.#written = 0
    }
    this.#written += 1
    return this.#writing
  }

  reading(salt: Buffer): KeyObject {
    const name = salt.toString('latin1')
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const key = this.#expand(salt)
    const [oldest] = this.#known.keys()
    if (oldest !== undefined && this.#known.size >= knownMax) this.#known.delete(oldest)
    this.#known.set(name, key)
    return key
  }

  /** HKDF-Expand of RFC 5869 for 32 bytes, which are one block: one HMAC. */
  #expand(salt: Buffer): KeyObject {
    return createSecretKey(createHmac('sha256', this.#extracted).update('salt:').update(salt).update('\u0001').digest())
  }
}
