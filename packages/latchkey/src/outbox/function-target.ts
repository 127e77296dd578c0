/** Delivers to a function in this process. */
import type { DeliveryOptions, DeliveryResult, Target } from '../ports/target.ts'
import { checkOptions, type ChecksOf, shown } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import { text } from '../ports/option-kinds.ts'
import type { Message } from '../ports/outbox.ts'

export interface FunctionTargetOptions {
  /** For logs and listings. Default: the function's name. */
  readonly name?: string
}

const functionTargetChecks: ChecksOf<FunctionTargetOptions> = { name: text }

/** Undefined: delivered. A string: delivered, and that is the downstream id. A throw: it is tried again. */
export type FunctionTargetResult = void | string | DeliveryResult

/**
 * `fn` gets the message and a signal, and may be called again with the same `dedupId`: store that id in the same transaction as your writes.
 */
export function functionTarget(
  fn: (message: Message, options: DeliveryOptions) => FunctionTargetResult | Promise<FunctionTargetResult>,
  options: FunctionTargetOptions = {},
): Target {
  if (typeof fn !== 'function') throw misconfigured(`functionTarget needs a function (got ${shown(fn)})`)
  checkOptions('functionTarget', options, functionTargetChecks)
  const { name = fn.name || 'function' } = options
  return {
    name,
    async deliver(message, options) {
      const result = await fn(message, options)
      if (typeof result === 'string') return { kind: 'delivered', downstreamId: result }
      return result ?? { kind: 'delivered' }
    },
  }
}
