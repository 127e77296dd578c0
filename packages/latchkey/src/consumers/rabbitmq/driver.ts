/** The few methods used of `amqplib`. Typed by shape, so that the application brings its own version. */

/** What `connect(…)` returns, with `recovery` or without. */
export interface RabbitmqConnection {
  createConfirmChannel(): Promise<RabbitmqChannel>
}

export interface RabbitmqChannel {
  prefetch(count: number): Promise<unknown>
  /** Rejects, and closes the channel, if there is no such queue. */
  checkQueue(queue: string): Promise<unknown>
  assertQueue(queue: string, options: RabbitmqQueueOptions): Promise<unknown>
  /** Null: the server has ended it, because the queue is gone. */
  consume(
    queue: string,
    onMessage: (message: RabbitmqMessage | null) => void,
  ): Promise<{ readonly consumerTag: string }>
  cancel(consumerTag: string): Promise<unknown>
  ack(message: RabbitmqMessage): void
  sendToQueue(
    queue: string,
    content: Buffer,
    /** The properties of the message, as they came. */
    options: object,
    /** Without an error: confirmed. */
    confirm: (error: unknown) => void,
  ): boolean
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'close', listener: () => void): unknown
  close(): Promise<void>
}

export interface RabbitmqQueueOptions {
  durable: boolean
  arguments: Record<string, unknown>
}

export interface RabbitmqMessage {
  readonly content: Buffer
  readonly fields: { readonly deliveryTag: number; readonly exchange: string }
  readonly properties: RabbitmqProperties
}

export interface RabbitmqProperties {
  readonly messageId?: string | undefined
  readonly contentType?: string | undefined
  readonly type?: string | undefined
  readonly headers?: Readonly<Record<string, unknown>> | undefined
}
