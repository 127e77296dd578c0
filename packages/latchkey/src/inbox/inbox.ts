/** `inbox`: an operation whose key is the identity of a message. What every consumer does, and anything else that hands over a message with an id. */
import type { Execution } from '../engine/execution.ts'
import { engine } from '../engine/internal.ts'
import type { DeclaredOperation, DefinedOperation, Operation } from '../engine/operation.ts'
import { checkOptions, type ChecksOf } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import { callable, count, oneOf, waitedMs } from '../ports/option-kinds.ts'
import type { OnBeat } from './beat.ts'
import { definedRunner, deliver, handlerRunner, type InboxHandler, type InboxParts, type Runner } from './delivery.ts'
import { type InboxMessage, readMessage } from './message.ts'
import { park } from './park.ts'
import { redrive, type Redriven } from './redrive.ts'
import type { InboxResult } from './result.ts'

export interface InboxOptions {
  /**
   * The name of the consumer group, durable consumer or worker. It is the scope of its keys: two consumers of one message are two identities. Once
   * messages were received, it must not change.
   */
  readonly consumer: string
  /** How often a message is tried before it is parked. Default 10: about three quarters of an hour with the default backoff. */
  readonly attemptsMax?: number
  /** The wait after the first failed attempt; it doubles with each. Default 1 s. */
  readonly backoffMs?: number
  /** The longest wait. Default 10 min. */
  readonly backoffMsMax?: number
  /**
   * A message that may have taken effect does not run again until its row is settled. `retry` (default): it is delivered again until then. `park`: it
   * is parked, and taken again by `redriven` once its row is settled, so that it holds up no other message.
   */
  readonly onUnknown?: 'retry' | 'park'
  /**
   * How often `onBeat` is called for an atomic operation, which has no lease. Default 10 s. Choose a third of the broker's lease where that is shorter
   * than 30 s.
   */
  readonly beatMs?: number
}

export interface DefinedInboxOptions<Input> extends InboxOptions {
  /** The input of the operation, from the message. A message that it throws for is parked as `input-refused`. */
  readonly input: (message: InboxMessage) => Input | Promise<Input>
}

export interface ReceiveOptions {
  /**
   * Called every third of the operation's `leaseMs` while it runs, after the lease of the row was renewed: renew the broker's lease of the message
   * here. It is no longer called once the claim is lost.
   */
  readonly onBeat?: OnBeat
}

export interface RedrivenOptions {
  /** How many messages at most. Default 100. */
  readonly limit?: number
}

/** Of a guarded or atomic operation. */
export interface Inbox<X extends Execution> {
  /** Runs the handler once for this message. Every way in which that can end is a result: it rejects only for what is no message. */
  receive<Data>(
    message: InboxMessage<Data>,
    handler: InboxHandler<X, Data>,
    options?: ReceiveOptions,
  ): Promise<InboxResult>
  /** Runs the messages that operators have marked, one after the other. Call it every few seconds, in every process that consumes. */
  redriven<Data>(handler: InboxHandler<X, Data>, options?: RedrivenOptions): Promise<readonly Redriven[]>
}

/** Of a phased or deferred operation, whose definition is declared with it. */
export interface DefinedInbox {
  /** As of the other kinds. `done` of a deferred operation: it is stored, and a worker runs it. */
  receive(message: InboxMessage, options?: ReceiveOptions): Promise<InboxResult>
  redriven(options?: RedrivenOptions): Promise<readonly Redriven[]>
}

export function inbox<X extends Execution, C>(operation: Operation<X, C>, options: InboxOptions): Inbox<X>
export function inbox<Input, C>(
  operation: DefinedOperation<Input, C>,
  options: DefinedInboxOptions<Input>,
): DefinedInbox
export function inbox<X extends Execution, Input, C>(
  operation: Operation<X, C> | DefinedOperation<Input, C>,
  options: InboxOptions | DefinedInboxOptions<Input>,
): Inbox<X> | DefinedInbox {
  // `as`: the overloads say which options belong to which kind, and both are checked.
  return isDefined(operation)
    ? definedInbox(operation, options as DefinedInboxOptions<Input>)
    : handlerInbox(operation, options)
}

function isDefined<X extends Execution, Input, C>(
  operation: Operation<X, C> | DefinedOperation<Input, C>,
): operation is DefinedOperation<Input, C> {
  return operation.kind === 'phased' || operation.kind === 'deferred'
}

function definedInbox<Input, C>(
  operation: DefinedOperation<Input, C>,
  options: DefinedInboxOptions<Input>,
): DefinedInbox {
  const parts = partsOf(operation, options, definedChecks)
  const { input } = options
  if (input === undefined) {
    throw misconfigured(`${ownerOf(operation)}: a ${operation.kind} operation needs input, a function of the message`)
  }
  const runner = (message: InboxMessage) => definedRunner(operation, input, message)
  return {
    receive: (message, given = {}) => receive(parts, { message, runner, given }),
    redriven: async (given = {}) => redrive(parts, runner, limitOf(parts, given)),
  }
}

function handlerInbox<X extends Execution, C>(operation: Operation<X, C>, options: InboxOptions): Inbox<X> {
  const parts = partsOf(operation, options, inboxChecks)
  const runnerOf = <Data>(handler: InboxHandler<X, Data>) => {
    // The data of a message is what its sender put there: the handler says of which type.
    const untyped = handler as InboxHandler<X>
    return (message: InboxMessage) => handlerRunner(operation, untyped, message)
  }
  return {
    receive: (message, handler, given = {}) => receive(parts, { message, runner: runnerOf(handler), given }),
    redriven: async (handler, given = {}) => redrive(parts, runnerOf(handler), limitOf(parts, given)),
  }
}

interface Received {
  readonly message: InboxMessage
  readonly runner: (message: InboxMessage) => Runner
  readonly given: ReceiveOptions
}

async function receive<C>(parts: InboxParts<C>, { message, runner, given }: Received): Promise<InboxResult> {
  checkOptions(`${ownerOf(parts.operation)}: receive`, given, receiveChecks)
  const read = readMessage(ownerOf(parts.operation), message)
  const ended = await deliver(parts, { message: read, run: runner(message), spent: 0, onBeat: given.onBeat })
  return ended.kind === 'park' ? park(parts, read, ended) : ended
}

const consumerName = {
  wants: 'a name of 1 to 255 characters',
  fits: (value: unknown): boolean => typeof value === 'string' && /^[^\0\p{Surrogate}]{1,255}$/u.test(value),
}
const inboxChecks: ChecksOf<InboxOptions> = {
  consumer: consumerName,
  attemptsMax: count,
  backoffMs: waitedMs,
  backoffMsMax: waitedMs,
  onUnknown: oneOf('retry', 'park'),
  beatMs: waitedMs,
}
const definedChecks: ChecksOf<DefinedInboxOptions<unknown>> = { ...inboxChecks, input: callable }
const receiveChecks: ChecksOf<ReceiveOptions> = { onBeat: callable }
const redrivenChecks: ChecksOf<RedrivenOptions> = { limit: count }

function partsOf<C>(operation: DeclaredOperation<C>, options: InboxOptions, checks: typeof inboxChecks): InboxParts<C> {
  const owner = ownerOf(operation)
  checkOptions(owner, options, checks)
  const { consumer, attemptsMax = 10, backoffMs = 1_000, backoffMsMax = 600_000, onUnknown = 'retry', beatMs } = options
  if (consumer === undefined) throw misconfigured(`${owner}: needs consumer, the name of its group or durable consumer`)
  if (backoffMsMax < backoffMs) {
    throw misconfigured(`${owner}: backoffMsMax must be at least backoffMs, ${backoffMs} (got ${backoffMsMax})`)
  }
  checkFit(owner, operation)
  if (beatMs !== undefined && operation.kind !== 'atomic') {
    throw misconfigured(
      `${owner}: beatMs is for atomic operations; a ${operation.kind} one beats every third of its leaseMs`,
    )
  }
  return { operation, consumer, attemptsMax, backoff: { backoffMs, backoffMsMax }, onUnknown, beatMs }
}

/** What an operation may be for requests, and not for messages. */
function checkFit<C>(owner: string, { kind, [engine]: { settings, shared } }: DeclaredOperation<C>): void {
  shared.inbox.require(owner)
  if (settings.onStoreDown === 'run-unprotected') {
    throw misconfigured(
      `${owner}: onStoreDown must be 'refuse': a message waits at its broker, and runs when the store is back`,
    )
  }
  if (kind === 'guarded' && settings.onFailure === 'store') {
    throw misconfigured(
      `${owner}: onFailure must be 'hold' or 'rerun' (got 'store'): no client reads the stored error of a message, and the message would count as done`,
    )
  }
  if (settings.keyAgeMsMax !== undefined) {
    throw misconfigured(
      `${owner}: keyAgeMsMax reads the time of a UUIDv7, and the key of a message is its source and id. Leave it out`,
    )
  }
}

function ownerOf({ name }: Pick<DeclaredOperation, 'name'>): string {
  return `inbox of ${name}`
}

const redrivenDefault = 100

function limitOf<C>({ operation }: InboxParts<C>, given: RedrivenOptions): number {
  checkOptions(`${ownerOf(operation)}: redriven`, given, redrivenChecks)
  return given.limit ?? redrivenDefault
}
