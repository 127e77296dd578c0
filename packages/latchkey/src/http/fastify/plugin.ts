/** The plugin: it adds the hooks to the routes that `idempotent()` covers, and to no others. */
import type { Execution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import { misconfigured } from '../../ports/errors.ts'
import { covers } from '../exchange/exchange.ts'
import { isDefined } from '../exchange/route.ts'
import { tapBody } from './body-tap.ts'
import { claim } from './claim.ts'
import type {
  FastifyAppLike,
  FastifyHandler,
  FastifyRouteLike,
  OnError,
  OnSend,
  PreHandler,
  PreParsing,
} from './driver.ts'
import { setAnswer } from './reply-head.ts'
import { follow, openState, stateOf } from './request-state.ts'

type AnyOperation = Operation<Execution, unknown> | DefinedOperation<unknown, unknown>

/** What `idempotent()` returned. */
const declarations = new WeakMap<object, AnyOperation>()
/** Those whose route has the hooks. */
const hooked = new WeakSet<object>()

/** Register it before the routes: `await app.register(latchkeyFastify)`. */
export function latchkeyFastify(app: FastifyAppLike, _options: object, done: (error?: Error) => void): void {
  Reflect.apply(app.addHook, app, ['onRoute', cover])
  done()
}
// Fastify's own sign, the one that fastify-plugin sets: without it the hooks would end with the plugin's own routes.
Object.assign(latchkeyFastify, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'latchkey',
})

export function declareHandler<F extends FastifyHandler>(handler: F, operation: AnyOperation): F {
  declarations.set(handler, operation)
  return failEarly(handler, operation.name)
}

export function declarePreHandler(operation: Operation<Execution, unknown>): PreHandler {
  const preHandler = claimFor(operation)
  declarations.set(preHandler, operation)
  return failEarly(preHandler, operation.name)
}

/**
 * Fastify binds a route's handler when the route is added, after the `onRoute` hooks, and its `preHandler` hooks before it listens. So a
 * missing plugin is found at start, and not by the first request; should Fastify stop binding, every request is still refused.
 */
function failEarly<F extends (...args: never[]) => unknown>(declared: F, name: string): F {
  const bind = (self: unknown): unknown => {
    if (!hooked.has(declared)) throw withoutPlugin(name)
    return Function.prototype.bind.call(declared, self)
  }
  return Object.defineProperty(declared, 'bind', { value: bind })
}

export function withoutPlugin(name: string): Error {
  return misconfigured(
    `${name}: the route has no claim, so its handler would run unprotected. Register the plugin first ` +
      '(await app.register(latchkeyFastify)), and give Fastify the very function that idempotent() returned',
  )
}

function cover(route: FastifyRouteLike): void {
  const mounted = [route.preHandler ?? [], route.handler].flat()
  const [declared, ...others] = mounted.filter(one => typeof one === 'function' && declarations.has(one))
  if (typeof declared !== 'function') return
  const operation = declarations.get(declared)
  if (operation === undefined) return
  if (others.length > 0)
    throw misconfigured(`${operation.name}: the route has two idempotent(): a route is one operation`)
  hooked.add(declared)
  if (!addHooks(route, operation) || isDefined(operation)) return
  // Last of all: after authentication, and after whatever else may refuse the request.
  if (declared === route.handler) route.preHandler = [route.preHandler ?? [], claimFor(operation)].flat()
  else route.handler = followed(route.handler as FastifyHandler) // a route's handler is a function
}

/** The handler behind the middleware form. */
function followed(handler: FastifyHandler): FastifyHandler {
  return function (request, reply) {
    return follow(stateOf(request), () => handler.call(this, request, reply))
  }
}

/** False where none of the route's methods is covered. */
function addHooks(route: FastifyRouteLike, operation: AnyOperation): boolean {
  const { methods, bodyBytesMax } = operation[engine].settings
  const isCovered = [route.method].flat().some(method => covers(methods, method))
  // A phased handler refuses what it does not cover, and needs the state of the request to do so.
  if (!isCovered && !isDefined(operation)) return false
  // Last of each: after decompression, and over what other hooks made of a replay.
  route.preParsing = [route.preParsing ?? [], arriveWithin(bodyBytesMax)].flat()
  route.onSend = [route.onSend ?? [], restore].flat()
  if (!isDefined(operation)) route.onError = [noteError, route.onError ?? []].flat()
  return true
}

function arriveWithin(bodyBytesMax: number): PreParsing {
  return (request, _reply, payload, done) => {
    openState(request, tapBody(payload, bodyBytesMax))
    done()
  }
}

function claimFor(operation: Operation<Execution, unknown>): PreHandler {
  return async (request, reply) => {
    const state = stateOf(request)
    if (state !== undefined) return claim(state, { operation, request, reply })
    if (covers(operation[engine].settings.methods, request.method)) throw withoutPlugin(operation.name)
  }
}

const noteError: OnError = (request, _reply, error, done) => {
  const state = stateOf(request)
  if (state?.stage.kind === 'running') state.error ??= error
  done()
}

/** A replay was stored after the application's `onSend` hooks; what they do to it a second time is undone. */
const restore: OnSend = (request, reply, payload, done) => {
  const stage = stateOf(request)?.stage
  if (stage?.kind !== 'answered') return done(null, payload)
  setAnswer(reply, stage.answer)
  // Null, because undefined means "as it was".
  done(null, stage.answer.body.byteLength === 0 ? null : Buffer.from(stage.answer.body))
}
