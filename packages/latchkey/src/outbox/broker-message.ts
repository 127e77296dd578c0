/** What the targets of brokers share: what a message carries beside its payload. */
import { shown } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import type { Message } from '../ports/outbox.ts'

/** Enough to fill a batch of the relay: one commit of the store then covers as many confirms. */
export const concurrencyDefault = 200

/** Where a message goes, by its topic or as the application decides. */
export type Address = string | ((message: Message) => string)

export function addressOf(address: Address | undefined, message: Message): string {
  if (address === undefined) return message.topic
  const found: unknown = typeof address === 'string' ? address : address(message)
  if (typeof found === 'string' && found !== '') return found
  throw misconfigured(`the address of a message to ${message.topic} must be a text (got ${shown(found)})`)
}

export interface BrokerHeaders {
  readonly contentType: string
  /** Without the content type, and without names that belong to the broker. */
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/** `reserved`: what only the target itself may write. */
export function headersOf(message: Message, reserved: RegExp): BrokerHeaders {
  const all = Object.entries(message.headers)
  const isContentType = (name: string) => name.toLowerCase() === 'content-type'
  return {
    contentType: all.find(([name]) => isContentType(name))?.[1] ?? 'application/json',
    headers: all.filter(([name]) => !isContentType(name) && !reserved.test(name)),
  }
}
