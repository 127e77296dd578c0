/** One confirm channel, and what became of each message that was published on it. */
import type { ConfirmChannel, RabbitmqConnection, RabbitmqPublishOptions, ReturnedMessage } from './driver.ts'

export interface Publication {
  readonly exchange: string
  readonly routingKey: string
  readonly content: Buffer
  readonly options: RabbitmqPublishOptions
}

export type Confirm =
  | { readonly kind: 'confirmed' }
  /** Confirmed, and stored by no queue. */
  | { readonly kind: 'returned' }
  /** Refused by a queue for now. */
  | { readonly kind: 'nacked' }
  /** It may have been stored. `code`: why the server closed the channel; absent: not known. `alone`: no other message can be the reason. */
  | { readonly kind: 'closed'; readonly code: number | undefined; readonly alone: boolean }

export interface PublishChannel {
  readonly isClosed: boolean
  /** Never rejects. */
  publish(publication: Publication): Promise<Confirm>
  close(): Promise<void>
}

interface Unconfirmed {
  readonly messageId: string
  isReturned: boolean
}

/** `onClose`: it takes no more messages. */
export async function openChannel(connection: RabbitmqConnection, onClose: () => void): Promise<PublishChannel> {
  const channel = await connection.createConfirmChannel()
  const unconfirmed = new Set<Unconfirmed>()
  let closing: Pick<Extract<Confirm, { kind: 'closed' }>, 'code' | 'alone'> = { code: undefined, alone: false }
  let isClosed = false
  const close = () => {
    if (isClosed) return
    isClosed = true
    onClose()
  }
  channel.on('error', error => {
    const code: unknown = Reflect.get(error, 'code')
    closing = { code: typeof code === 'number' ? code : undefined, alone: unconfirmed.size === 1 }
  })
  channel.on('close', close)
  channel.on('return', message => markReturned(unconfirmed, message))

  const endOf = (sent: Unconfirmed, error: unknown): Confirm => {
    if (error === null || error === undefined) return { kind: sent.isReturned ? 'returned' : 'confirmed' }
    return isNack(error) ? { kind: 'nacked' } : { kind: 'closed', ...closing }
  }

  return {
    get isClosed() {
      return isClosed
    },
    publish: publication =>
      new Promise(resolve => {
        const sent: Unconfirmed = { messageId: publication.options.messageId, isReturned: false }
        const end = (error: unknown) => {
          unconfirmed.delete(sent)
          resolve(endOf(sent, error))
        }
        unconfirmed.add(sent)
        try {
          send(channel, publication, end)
        } catch {
          // It was closed while we held it, for another message.
          close()
          unconfirmed.delete(sent)
          resolve({ kind: 'closed', code: undefined, alone: false })
        }
      }),
    close: () => channel.close(),
  }
}

function send(channel: ConfirmChannel, publication: Publication, confirm: (error: unknown) => void): void {
  const { exchange, routingKey, content, options } = publication
  channel.publish(exchange, routingKey, content, options, confirm)
}

/** The oldest of that id: returns come in the order of the messages. */
function markReturned(unconfirmed: ReadonlySet<Unconfirmed>, { properties }: ReturnedMessage): void {
  for (const sent of unconfirmed) {
    if (sent.isReturned || sent.messageId !== properties.messageId) continue
    sent.isReturned = true
    return
  }
}

/** The client has no code for it. Whatever else it says, the message may have been stored. */
function isNack(error: unknown): boolean {
  return error instanceof Error && error.message === 'message nacked'
}
