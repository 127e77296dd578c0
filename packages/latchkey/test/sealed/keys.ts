/** Keys for tests, by name, and the options that use them. */
import type { EncryptionOptions } from 'latchkey'

export const keyA: Uint8Array = Buffer.alloc(32, 'a')
export const keyB: Uint8Array = Buffer.alloc(32, 'b')
const indexKey = Buffer.alloc(32, 'i')

export const underA: EncryptionOptions = { keys: { a: keyA }, current: 'a', indexKey }
/** In the middle of a rotation. */
export const fromAToB: EncryptionOptions = { keys: { a: keyA, b: keyB }, current: 'b', indexKey }
/** After it. */
export const underB: EncryptionOptions = { keys: { b: keyB }, current: 'b', indexKey }
