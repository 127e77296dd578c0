/** One request on a covered method: claimed in the interceptor, captured on the platform's response, sent when it is stored. */
import type { Attempt } from '../../engine/answer.ts'
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import { hasFailed, type HeldAnswer, holdAnswer } from '../node/capture.ts'
import { type Exchange, exchange } from '../exchange/exchange.ts'
import { exchangePhased, type PhasedRoute } from '../exchange/phased-route.ts'
import { rememberExecution } from '../../engine/execution.ts'
import { reportFailure } from '../exchange/route.ts'
import type { HandlerStream, NestContext, NextHandler } from './driver.ts'
import { rememberParameter } from './execution.ts'
import { followHandler, nothing } from './follow-handler.ts'
import { nestView, type Platform, platformOf } from './platform.ts'

/** What the interceptor returns to Nest: the handler's stream, or nothing where Latchkey has answered. */
export async function intercept<X extends Execution>(
  operation: Operation<X, unknown>,
  context: NestContext,
  next: NextHandler,
): Promise<HandlerStream> {
  const platform = platformOf(context)
  const { request } = platform
  // Here, because Nest binds the handler to the asynchronous context of this call, and claims are granted in others.
  const handled = next.handle()
  let begin: (running: Running) => void = () => {}
  const begun = new Promise<Running>(resolve => (begin = resolve))
  const exchanged = exchange(operation, nestView(platform), execution => {
    rememberExecution(request, execution)
    rememberParameter(request, execution)
    const running = startHandler(operation, platform, handled)
    begin(running)
    return running.attempt
  })
  const first = await Promise.race([begun, exchanged])
  if ('stream' in first) {
    platform.restoreDeclared()
    void conclude(operation, first.held, exchanged)
    return first.stream
  }
  if (first.kind === 'send') {
    platform.answer(first.answer)
    return nothing()
  }
  rememberParameter(request, uncoveredExecution(operation))
  platform.restoreDeclared()
  return handled
}

interface Running {
  readonly held: HeldAnswer
  readonly stream: HandlerStream
  readonly attempt: Promise<Attempt>
}

function startHandler<X extends Execution>(
  operation: Operation<X, unknown>,
  platform: Platform,
  handled: HandlerStream,
): Running {
  const { res, req } = platform
  const held = holdAnswer(res, req, { operation, over: answer => platform.over(answer) })
  const { watch, stream } = followHandler(handled, () => {
    // Nest ends a response that was begun as if it were whole. Of an atomic operation even a whole one is void: its rows are rolled back.
    held.isVoid = platform.headSent() && (operation.kind === 'atomic' || !res.writableEnded)
  })

  async function attempt(): Promise<Attempt> {
    const end = await held.ended
    if (watch.left && !watch.ended) {
      // An interceptor around this one gave up, and the handler still runs. The client need not wait, but the claim and the transaction
      // are held until the handler has ended.
      held.sendNow()
      await watch.over
      return {
        kind: 'threw',
        error: watch.error ?? new Error('an outer interceptor gave up while the handler was still running'),
      }
    }
    if (operation.kind === 'atomic' || hasFailed(end)) await watch.over
    return held.attempt(platform.ownPart(end), watch.error)
  }
  return { held, stream, attempt: attempt() }
}

async function conclude<X extends Execution>(
  operation: Operation<X, unknown>,
  held: HeldAnswer,
  exchanged: Promise<Exchange>,
): Promise<void> {
  try {
    held.conclude(await exchanged)
  } catch (error) {
    reportFailure(operation, 'an execution failed', error)
    held.conclude()
  }
}

/** The definition takes the place of the method's body. Rejects with what the definition threw, for Nest's exception filters. */
export async function interceptPhased(
  operation: DefinedOperation<unknown, unknown>,
  route: PhasedRoute<unknown, unknown>,
  context: NestContext,
): Promise<HandlerStream> {
  if (context.getType() !== 'http') {
    // Continuing would call the method, whose body is empty, and report that as a success.
    throw misconfigured(
      `${operation.name}: a phased @Idempotent() answers HTTP requests only (got ${context.getType()})`,
    )
  }
  const platform = platformOf(context)
  const answer = await exchangePhased(operation, nestView(platform), route)
  // A timeout around this interceptor may have answered meanwhile. The outcome is stored, and the retry gets it.
  if (!platform.headSent()) platform.answer(answer)
  return nothing()
}
