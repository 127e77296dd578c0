/** One request on a covered method: claimed when the method is called, captured on the platform's response, sent when it is stored. */
import type { Attempt } from '../../engine/answer.ts'
import { type Execution, rememberExecution, uncoveredExecution } from '../../engine/execution.ts'
import type { Operation } from '../../engine/operation.ts'
import { notExecuted } from '../../ports/errors.ts'
import { hasFailed, holdAnswer } from '../node/capture.ts'
import { type Exchange, exchange, exchangeRefused } from '../exchange/exchange.ts'
import { exchangePhased } from '../exchange/phased-route.ts'
import { reportFailure } from '../exchange/route.ts'
import type { Begun, Call, Granted, MethodRoute, Running } from './call.ts'
import type { HandlerWatch } from './follow-handler.ts'
import { nestView, type Platform, platformOf } from './platform.ts'

/** Claims, and runs the body where the claim is granted. Where Latchkey answers instead, it ends as a body that returns nothing. */
export async function claimThenRun(call: Call, body: (execution: Execution) => unknown): Promise<unknown> {
  call.begun ??= begin(call)
  const begun = await call.begun
  return begun.kind === 'run' ? body(begun.execution) : undefined
}

async function begin(call: Call): Promise<Begun> {
  // A timeout answered while the pipes were running. Nothing has happened, and nothing may happen now.
  if (call.watch.left) throw gaveUp()
  const platform = platformOf(call.context)
  return call.route.form === 'phased' ? answerPhased(call.route, platform) : claim(call, call.route.operation, platform)
}

async function claim(call: Call, operation: Operation<Execution, unknown>, platform: Platform): Promise<Begun> {
  const { request } = platform
  let start: (execution: Execution) => void = () => {}
  const started = new Promise<Granted>(resolve => (start = execution => resolve({ kind: 'run', execution })))
  const exchanged = exchange(operation, nestView(platform), execution => {
    if (call.watch.left) return Promise.resolve({ kind: 'threw', error: gaveUp() })
    rememberExecution(request, execution)
    const held = holdAnswer(platform.res, platform.req, { operation, over: answer => platform.over(answer) })
    call.running = { operation, platform, held }
    start(execution)
    return attempt(call.running, call.watch)
  })
  const first = await Promise.race([started, exchanged])
  switch (first.kind) {
    case 'run':
      platform.restoreDeclared()
      if (call.running !== undefined) void conclude(call.running, exchanged)
      return first
    case 'send':
      platform.answer(first.answer)
      return { kind: 'answered' }
    case 'release':
      throw gaveUp()
    case 'pass':
      platform.restoreDeclared()
      return { kind: 'run', execution: uncoveredExecution(operation) }
  }
}

function gaveUp(): Error {
  return notExecuted(new Error('an interceptor around @Idempotent() gave up before the method began'))
}

async function attempt({ operation, platform, held }: Running, watch: HandlerWatch): Promise<Attempt> {
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

async function conclude({ operation, held }: Running, exchanged: Promise<Exchange>): Promise<void> {
  try {
    held.conclude(await exchanged)
  } catch (error) {
    reportFailure(operation, 'an execution failed', error)
    held.conclude()
  }
}

/** The definition takes the place of the method's body. Rejects with what the definition threw, for Nest's exception filters. */
async function answerPhased(
  { operation, route }: Extract<MethodRoute, { form: 'phased' }>,
  platform: Platform,
): Promise<Begun> {
  const answer = await exchangePhased(operation, nestView(platform), route)
  // A timeout around the interceptor may have answered meanwhile. The outcome is stored, and the retry gets it.
  if (!platform.headSent()) platform.answer(answer)
  return { kind: 'answered' }
}

/**
 * A pipe, or an interceptor below ours, refused the request before its method was called: nothing is claimed. True: the key has a row, and
 * its answer was sent. False: the error goes to Nest's exception filters, as without Latchkey.
 */
export async function answerRefused({ route, context, watch }: Call, error: unknown): Promise<boolean> {
  const platform = platformOf(context)
  try {
    const result = await exchangeRefused(route.operation, nestView(platform), error)
    if (result.kind === 'send' && !watch.left && !platform.headSent()) {
      platform.answer(result.answer)
      return true
    }
  } catch (failure) {
    reportFailure(route.operation, 'a refused request could not be looked up', failure)
  }
  platform.restoreDeclared()
  return false
}
