/** The status resource on Nest. */
import { misconfigured } from '../../ports/errors.ts'
import { checkStatus, exchangeStatus, type StatusHost, type StatusOptions } from '../exchange/answers/status.ts'
import type { InjectionToken, LatchkeyInterceptor, RouteDecorator } from './driver.ts'
import { nothing } from './follow-handler.ts'
import { injectedInterceptor, isToken } from './injection.ts'
import { addInterceptor } from './metadata.ts'
import { nestView, platformOf } from './platform.ts'

/**
 * The status of phased and deferred work, for its own scope. It takes the place of the method, whose body is never called:
 *
 *   @Get('operations/:id')
 *   @UseGuards(Authenticated)
 *   @StatusOf(latchkey)
 *   status(): void {}
 *
 * Put it behind the same guards as the operations, and where `http.statusPath` says. With a token, the Latchkey is injected: that of
 * `LatchkeyModule` is `getLatchkeyToken()`.
 */
export function StatusOf<Request>(
  latchkey: StatusHost<Request> | InjectionToken,
  options: StatusOptions<Request> = {},
): RouteDecorator {
  const interceptor = isToken(latchkey)
    ? injectedInterceptor(latchkey, (injected: StatusHost<Request>) => statusInterceptor(injected, options))
    : statusInterceptor(latchkey, options)
  return (_prototype, _method, { value }) => {
    if (typeof value !== 'function') throw misconfigured('@StatusOf() belongs on a method')
    addInterceptor(value, interceptor)
  }
}

function statusInterceptor<Request>(
  latchkey: StatusHost<Request>,
  options: StatusOptions<Request>,
): LatchkeyInterceptor {
  checkStatus(latchkey, options)
  return {
    async intercept(context) {
      if (context.getType() !== 'http')
        throw misconfigured(`@StatusOf() answers HTTP requests only (got ${context.getType()})`)
      const platform = platformOf(context)
      // The scope's request is the platform's own, which Nest does not type either.
      const view = { ...nestView(platform), context: platform.request as unknown as Request }
      const answer = await exchangeStatus(latchkey, view, options)
      if (!platform.headSent()) platform.answer(answer)
      return nothing()
    },
  }
}
