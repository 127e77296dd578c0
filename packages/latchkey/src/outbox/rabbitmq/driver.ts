/** The few methods used of `amqplib`. Typed by shape, so that the application brings its own version. */

/** What `connect(…)` returns, with `recovery` or without. */
export interface RabbitmqConnection {
  createConfirmChannel(): Promise<ConfirmChannel>
}

export interface ConfirmChannel {
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: RabbitmqPublishOptions,
    /** Without an error: confirmed. */
    confirm: (error: unknown) => void,
  ): boolean
  /** A message that no queue takes; it comes before the confirm of the same message. */
  on(event: 'return', listener: (message: ReturnedMessage) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'close', listener: () => void): unknown
  close(): Promise<void>
}

export interface RabbitmqPublishOptions {
  readonly messageId: string
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly persistent: boolean
  readonly mandatory: boolean
}

export interface ReturnedMessage {
  readonly properties: { readonly messageId?: unknown }
}
