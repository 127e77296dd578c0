/** What can go wrong in the ledger. */
import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConsumer, NatsMessage } from 'latchkey/consumers/nats'

/** The next `messages` are acknowledged `ms` after they were booked: time for a kill. */
export interface LateAck {
  readonly kind: 'late-ack'
  readonly ms: number
  readonly messages: number
}

/** Undefined: no fault. */
export function parseLedgerFault(value: unknown): LateAck | null | undefined {
  if (value === null) return null
  if (typeof value !== 'object') return undefined
  // Each member is checked below, before its type is relied on.
  const { kind, ms, messages = 1 } = value as Record<string, unknown>
  if (kind !== 'late-ack' || typeof ms !== 'number' || typeof messages !== 'number') return undefined
  return ms >= 0 && messages > 0 ? { kind, ms, messages } : undefined
}

export interface LedgerFaults {
  set(fault: LateAck | null): void
  current(): LateAck | null
  /** The same consumer, with late acknowledgements while the fault is on. */
  strike(from: NatsConsumer): NatsConsumer
}

export function ledgerFaults(): LedgerFaults {
  let fault: LateAck | null = null

  async function wait(): Promise<void> {
    if (fault === null) return
    const { ms, messages } = fault
    fault = messages > 1 ? { ...fault, messages: messages - 1 } : null
    await delay(ms)
  }

  const late = (message: NatsMessage): NatsMessage => ({
    ...{ subject: message.subject, data: message.data, headers: message.headers, seq: message.seq },
    nak: ms => message.nak(ms),
    term: () => message.term(),
    working: () => message.working(),
    ack: () => void wait().then(() => message.ack()),
  })

  return {
    set: given => void (fault = given),
    current: () => fault,
    strike: from => ({
      info: cached => from.info(cached),
      async consume(options) {
        const messages = await from.consume(options)
        return {
          stop: () => messages.stop(),
          async *[Symbol.asyncIterator]() {
            for await (const message of messages) yield late(message)
          },
        }
      },
    }),
  }
}
