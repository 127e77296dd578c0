/** One request on a phased method: the definition takes the place of the method's body. */
import type { DefinedOperation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import { exchangePhased, type PhasedRoute } from '../exchange/phased-route.ts'
import type { NestContext, Observable } from './driver.ts'
import { nothing } from './follow-handler.ts'
import { platformOf } from './platform.ts'
import { nestView } from './request-state.ts'

/** Rejects with what the definition threw, for Nest's exception filters. */
export async function visitPhased(
  operation: DefinedOperation<unknown, unknown>,
  route: PhasedRoute<unknown, unknown>,
  context: NestContext,
): Promise<Observable> {
  if (context.getType() !== 'http') {
    // Going on would call the method, whose body stands for nothing, and report that as a success.
    throw misconfigured(
      `${operation.name}: a phased @Idempotent() answers HTTP requests, and this is ${context.getType()}`,
    )
  }
  const platform = platformOf(context)
  const answer = await exchangePhased(operation, nestView(platform), route)
  // A timeout around this interceptor may have answered meanwhile. The outcome is stored, and the retry gets it.
  if (!platform.headSent()) platform.answer(answer)
  return nothing()
}
