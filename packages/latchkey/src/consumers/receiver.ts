/** An inbox with its handler, whatever the kind of its operation. */
import type { Execution } from '../engine/execution.ts'
import { engine } from '../engine/internal.ts'
import type { DefinedOperation, Operation } from '../engine/operation.ts'
import {
  type DefinedInboxOptions,
  inbox,
  type InboxHandler,
  type InboxMessage,
  type InboxOptions,
  type InboxResult,
  type Redriven,
} from '../inbox/index.ts'
import type { Clock } from '../ports/clock.ts'
import { misconfigured } from '../ports/errors.ts'
import type { Telemetry } from '../ports/telemetry.ts'

export interface Receiver {
  readonly operation: string
  readonly leaseMs: number
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Never rejects for what can happen to a message. */
  receive(message: InboxMessage, onBeat: () => unknown): Promise<InboxResult>
  /** Runs one message that operators have marked. Resolves with whether to look for the next at once. */
  redriveOne(): Promise<boolean>
}

/** Of a phased or deferred operation, without a handler. */
export type Consumed<X extends Execution, Input, C> = Operation<X, C> | DefinedOperation<Input, C>

export function receiverOf<X extends Execution, Input, C>(
  operation: Consumed<X, Input, C>,
  options: InboxOptions | DefinedInboxOptions<Input>,
  handler: InboxHandler<X> | undefined,
): Receiver {
  const { name } = operation
  const { settings, shared } = operation[engine]
  const common = {
    operation: name,
    leaseMs: settings.leaseMs,
    clock: shared.clock,
    telemetry: shared.telemetry,
  }
  if (isDefined(operation)) {
    // `as`: that `input` is there is checked by the inbox.
    const defined = inbox(operation, options as DefinedInboxOptions<Input>)
    return {
      ...common,
      receive: (message, onBeat) => defined.receive(message, { onBeat }),
      redriveOne: async () => isMore(await defined.redriven({ limit: 1 })),
    }
  }
  const own = inbox(operation, options)
  if (typeof handler !== 'function') {
    throw misconfigured(
      `consume ${name}: a ${operation.kind} operation needs a handler: consume(operation, options, handler)`,
    )
  }
  return {
    ...common,
    receive: (message, onBeat) => own.receive(message, handler, { onBeat }),
    redriveOne: async () => isMore(await own.redriven(handler, { limit: 1 })),
  }
}

/** One that was put off by the store would be so again. */
function isMore([one]: readonly Redriven[]): boolean {
  return one !== undefined && (one.result.kind !== 'retry' || one.result.cause !== 'store-down')
}

function isDefined<X extends Execution, Input, C>(
  operation: Consumed<X, Input, C>,
): operation is DefinedOperation<Input, C> {
  return operation.kind === 'phased' || operation.kind === 'deferred'
}
