/** One call of a covered method, from the interceptor, which sees its request and its end, to the method, which claims. */
import type { HeldAnswer } from '../node/capture.ts'
import type { Execution } from '../../engine/execution.ts'
import type { Operation } from '../../engine/operation.ts'
import type { Route } from '../exchange/route.ts'
import type { NestContext } from './driver.ts'
import type { HandlerWatch } from './follow-handler.ts'
import type { Platform } from './platform.ts'

/** What `@Idempotent()` was given. */
export type MethodRoute = Exclude<Route<Execution, unknown, never>, { readonly form: 'handler' }>

export interface Call {
  readonly route: MethodRoute
  readonly context: NestContext
  readonly watch: HandlerWatch
  /** Set when the method is called: guards and pipes have let the request pass. An interceptor may call it again. */
  begun: Promise<Begun> | undefined
  /** Of a method that was granted the key. */
  running: Running | undefined
}

export interface Running {
  readonly operation: Operation<Execution, unknown>
  readonly platform: Platform
  readonly held: HeldAnswer
}

export type Granted = Extract<Begun, { kind: 'run' }>

export type Begun =
  /** The method runs, for a claim or because the request is not covered. */
  | { readonly kind: 'run'; readonly execution: Execution }
  /** Latchkey has answered, and the method does not run. */
  | { readonly kind: 'answered' }

/** On the request itself: a WeakMap keyed by request costs GC time. */
const ofRequest: unique symbol = Symbol('latchkey: call')

interface Called {
  [ofRequest]?: Call
}

export function rememberCall(request: object, call: Call): void {
  const called: Called = request
  called[ofRequest] = call
}

export function callOf(request: object): Call | undefined {
  const called: Called = request
  return called[ofRequest]
}
