/** A function that Lambda calls with a batch of an SQS queue. It reports those messages that must come again, and the others are deleted. */
import pg from 'pg'
import { createLatchkey, singleTenant } from 'latchkey'
import { inbox, type InboxMessage } from 'latchkey/inbox'
import { postgresStore } from 'latchkey/stores/postgres'

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 4 })
const latchkey = createLatchkey({ store: postgresStore({ pool }), scope: singleTenant })
const orders = inbox(latchkey.atomic('orders.book'), { consumer: 'billing' })

interface Order {
  readonly order: string
  readonly amount: number
}

export interface SqsRecord {
  readonly messageId: string
  readonly receiptHandle: string
  readonly body: string
  readonly messageAttributes: Readonly<Record<string, { readonly stringValue?: string }>>
  readonly eventSourceARN: string
}

/** Of `@aws-sdk/client-sqs`: `ChangeMessageVisibilityCommand`. */
export type ChangeVisibility = (record: SqsRecord, seconds: number) => Promise<unknown>

export function createHandler(changeVisibility: ChangeVisibility) {
  return async ({ Records }: { readonly Records: readonly SqsRecord[] }) => {
    const again: { itemIdentifier: string }[] = []
    await Promise.all(
      Records.map(async record => {
        const result = await orders.receive(messageOf(record), ({ tx }, message) => {
          const data = orderOf(message)
          return tx.query('insert into ledger (order_id, amount) values ($1, $2)', [data.order, data.amount])
        })
        if (result.kind !== 'retry') return
        again.push({ itemIdentifier: record.messageId })
        // If that fails, it comes again after the visibility timeout of the queue.
        await changeVisibility(record, Math.ceil(result.afterMs / 1_000)).catch(console.error)
      }),
    )
    // Needs `ReportBatchItemFailures` in the event source mapping: without it the whole batch comes again, or is deleted.
    return { batchItemFailures: again }
  }
}

/** The id is the producer's: SQS gives another `messageId` to a message that is sent twice. */
function messageOf(record: SqsRecord): InboxMessage<Uint8Array> {
  const { id, type } = record.messageAttributes
  return {
    source: record.eventSourceARN,
    id: id?.stringValue,
    type: type?.stringValue,
    contentType: 'application/json',
    // As it came: a body that is no JSON must fail by itself, and not with the whole batch.
    data: Buffer.from(record.body),
    position: record.messageId,
  }
}

function orderOf({ data }: InboxMessage<Uint8Array>): Order {
  return JSON.parse(new TextDecoder().decode(data))
}
