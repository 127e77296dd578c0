/** Where the key of an operation is, and what it looks like. */
import { keyLengthMax } from '../wire/key-rules.ts'
import type { Documented } from './answers.ts'

export type KeyDescription =
  | ({ readonly in: 'header'; readonly name: string } & KeyShape)
  /** A function of the application reads it. */
  | ({ readonly in: 'request' } & KeyShape)

interface KeyShape {
  readonly required: boolean
  readonly minLength: number
  readonly maxLength: number
  /** Of the whole key, without quotes. Absent: any. */
  readonly pattern?: string
  /** The same for people. */
  readonly text: string
}

export function keyOf({ settings }: Documented): KeyDescription {
  const { key, keyFormat, onMissingKey, keyAgeMsMax } = settings
  const { minLength = 1, maxLength = keyLengthMax, pattern, called, refuseEmails } = keyFormat
  const length = pattern === undefined ? `${minLength} to ${maxLength} characters` : undefined
  const shape = called ?? length ?? `${minLength} to ${maxLength} characters that match \`${pattern?.source}\``
  const sentences = [
    `The key is ${keyAgeMsMax === undefined ? shape : 'a UUID of version 7, made for this request'}.`,
    ...(refuseEmails === true ? ['It must not look like an e-mail address.'] : []),
  ]
  const described: KeyShape = {
    required: onMissingKey === 'refuse',
    minLength,
    maxLength,
    ...(pattern === undefined ? {} : { pattern: `^(?:${pattern.source})$` }),
    text: sentences.join(' '),
  }
  return 'header' in key ? { in: 'header', name: key.header, ...described } : { in: 'request', ...described }
}
