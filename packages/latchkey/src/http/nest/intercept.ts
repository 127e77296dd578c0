/** The interceptor of a covered method: after the guards, before the pipes. It notes the call for the method, and watches its end. */
import { misconfigured } from '../../ports/errors.ts'
import { type Call, type MethodRoute, rememberCall } from './call.ts'
import { answerRefused } from './claim.ts'
import type { HandlerStream, LatchkeyInterceptor, NestContext, NextHandler } from './driver.ts'
import { followHandler } from './follow-handler.ts'

export function interceptorOf(route: MethodRoute): LatchkeyInterceptor {
  return {
    async intercept(context, next) {
      if (context.getType() === 'http') return intercept(route, context, next)
      if (route.form === 'middleware') return next.handle()
      // Continuing would call the method, whose body is empty, and report that as a success.
      throw misconfigured(
        `${route.operation.name}: a phased @Idempotent() answers HTTP requests only (got ${context.getType()})`,
      )
    },
  }
}

function intercept(route: MethodRoute, context: NestContext, next: NextHandler): HandlerStream {
  const { watch, stream } = followHandler(next.handle(), error => failed(call, error))
  const call: Call = { route, context, watch, begun: undefined, running: undefined }
  rememberCall(context.switchToHttp().getRequest(), call)
  return stream
}

/** Before Nest's exception filters see the error. */
function failed(call: Call, error: unknown): Promise<boolean> | undefined {
  if (call.begun === undefined) return answerRefused(call, error)
  if (call.running === undefined) return undefined
  const { operation, platform, held } = call.running
  // Nest ends a response that was begun as if it were whole. Of an atomic operation even a whole one is void: its rows are rolled back.
  held.isVoid = platform.headSent() && (operation.kind === 'atomic' || !platform.res.writableEnded)
  return undefined
}
