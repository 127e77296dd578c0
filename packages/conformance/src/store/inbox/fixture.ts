import assert from 'node:assert/strict'
import type { NewParkedInboxMessage, ParkedInbox, Store, TakenInboxMessage } from 'latchkey'
import { bytes, leaseMs, uuidOf } from '../fixture.ts'

export function inboxIn({ name, inbox }: Store): ParkedInbox {
  assert.ok(inbox, `${name} says that it has an inbox, and has none`)
  return inbox
}

export const consumer = 'billing'
export const operation = 'invoices.book'

export function parkedMessage(name: string, over: Partial<NewParkedInboxMessage> = {}): NewParkedInboxMessage {
  return {
    id: uuidOf(`parked ${name}`),
    consumer,
    operation,
    source: 'orders',
    messageId: name,
    type: 'order.placed',
    contentType: 'application/json',
    position: 'orders/3/1042',
    cause: 'attempts',
    rowId: undefined,
    attempts: 10,
    form: 'json',
    headers: { traceparent: '00-1', 'x-note': 'caf\u00e9 \u0000 "quoted"' },
    payload: bytes('{"order":1}'),
    ...over,
  }
}

export function take(
  inbox: ParkedInbox,
  over: { consumer?: string; operation?: string } = {},
): Promise<TakenInboxMessage | undefined> {
  return inbox.take({ consumer, operation, leaseMs, ...over })
}

export async function taken(inbox: ParkedInbox): Promise<TakenInboxMessage> {
  const found = await take(inbox)
  assert.ok(found, 'expected a message that may be taken, found none')
  return found
}
