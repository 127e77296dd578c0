/** One request on a covered method: claimed in the interceptor, captured on the platform's response, sent when it is stored. */
import type { Attempt } from '../../engine/answer.ts'
import { type Execution, uncoveredExecution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import type { Operation } from '../../engine/operation.ts'
import { bodyOf } from '../node/body.ts'
import { nodeView } from '../node/request.ts'
import { attemptOfCapture, type Capture, captureResponse, type CaptureEnd } from '../node/capture.ts'
import { type Exchange, exchange } from '../exchange/exchange.ts'
import type { RequestView } from '../exchange/request.ts'
import type { CallHandler, NestContext, Observable } from './driver.ts'
import { rememberExecution } from './execution.ts'
import { followHandler, nothing } from './follow-handler.ts'
import { type Platform, platformOf } from './platform.ts'

const cure =
  'Its raw bytes are gone, and what the parser made of it does not tell two requests apart. Let Nest keep them: ' +
  'NestFactory.create(AppModule, { rawBody: true }).'

export function nestView({ req, request }: Platform): RequestView<unknown> {
  const body = async (bytesMax: number) => bodyOf(req, { raw: request.rawBody, parsed: request.body, cure, bytesMax })
  return nodeView(req, request, body)
}

/** What the interceptor gives to Nest: the handler's stream, or nothing where Latchkey has answered. */
export async function visit<X extends Execution>(
  operation: Operation<X, unknown>,
  context: NestContext,
  next: CallHandler,
): Promise<Observable> {
  const platform = platformOf(context)
  const { request } = platform
  // Here, because Nest binds the handler to the asynchronous context of this call, and claims are granted in others.
  const handled = next.handle()
  let begin: (run: Run) => void = () => {}
  const begun = new Promise<Run>(resolve => (begin = resolve))
  const ending = exchange(operation, nestView(platform), execution => {
    rememberExecution(request, { operation, execution })
    const run = startRun(operation, platform, handled)
    begin(run)
    return run.attempt
  })
  const first = await Promise.race([begun, ending])
  if ('stream' in first) {
    platform.restoreDeclared()
    void conclude(operation, { run: first, platform, ending })
    return first.stream
  }
  if (first.kind === 'send') {
    platform.answer(first.answer)
    return nothing()
  }
  rememberExecution(request, { operation, execution: uncoveredExecution(operation) })
  platform.restoreDeclared()
  return handled
}

interface Run {
  readonly capture: Capture
  readonly stream: Observable
  readonly attempt: Promise<Attempt>
  /** The client was answered before the handler had ended. */
  released: boolean
  /** The handler threw when its answer was half or wholly given, and that answer does not hold. */
  answerIsVoid: boolean
}

function startRun<X extends Execution>(operation: Operation<X, unknown>, platform: Platform, handled: Observable): Run {
  const { res, req } = platform
  const capture = captureResponse(res, req)
  const { watch, stream } = followHandler(handled, () => {
    // Nest ends a response that was begun as if it were whole. Of an atomic operation even a whole one is void: the rows go.
    run.answerIsVoid = platform.headSent() && (operation.kind === 'atomic' || !res.writableEnded)
  })

  async function attempt(): Promise<Attempt> {
    const end = await capture.ended
    if (watch.left && !watch.ended) {
      // An interceptor around this one gave up, and the handler still runs. The client is not kept waiting, but the claim and
      // the transaction are held until the handler has ended.
      run.released = true
      capture.release([])
      await watch.over
      return {
        kind: 'threw',
        error: watch.error ?? new Error('the answer was given up on while the handler still ran'),
      }
    }
    if (operation.kind === 'atomic' || !isGood(end)) await watch.over
    if (run.answerIsVoid) return { kind: 'threw', error: watch.error }
    return attemptOfCapture(platform.ownPart(end), watch.error)
  }
  const run: Run = { capture, stream, attempt: attempt(), released: false, answerIsVoid: false }
  return run
}

/** A failure that was answered for a handler that still runs (a platform's own timeout) must not let a retry run beside it. */
function isGood(end: CaptureEnd): boolean {
  if (end.kind === 'broken') return false
  return (end.kind === 'whole' ? end.response.status : end.status) < 500
}

interface Concluding {
  readonly run: Run
  readonly platform: Platform
  readonly ending: Promise<Exchange>
}

const failed = { status: 500, headers: [], body: new Uint8Array() }

async function conclude<X extends Execution>(
  operation: Operation<X, unknown>,
  { run, platform, ending }: Concluding,
): Promise<void> {
  try {
    const result = await ending
    if (run.released) return
    if (result.kind === 'send') return run.capture.replace(platform.over(result.answer))
    if (result.kind === 'release' && !run.answerIsVoid) return run.capture.release(result.headers)
  } catch (error) {
    operation[engine].shared.telemetry.report('an execution failed', { operation: operation.name, error })
    if (run.released) return
  }
  run.capture.replace(platform.over(failed))
}
