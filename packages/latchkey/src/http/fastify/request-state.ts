/** What Latchkey knows of one request on a covered route. */
import type { Execution } from '../../engine/execution.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import type { BodyTap } from './body-tap.ts'
import type { FastifyRequestLike } from './driver.ts'

export interface RequestState {
  readonly body: BodyTap
  stage: Stage
  /** What Fastify's error handler was given. */
  error: unknown
  hijacked: boolean
  handlerEnded: boolean
  /** Fulfils when the handler itself has ended, in whatever way. Its response may end earlier or later. */
  handler: Promise<void>
  /** Called with what the handler threw. */
  threw(error: unknown): void
}

export type Stage =
  | { readonly kind: 'arrived' }
  /** No claim is held, and none is needed: the handler runs as if Latchkey were not there. */
  | { readonly kind: 'passed' }
  | { readonly kind: 'running'; readonly execution: Execution }
  /** Latchkey answers; the handler must not run. */
  | { readonly kind: 'answered'; readonly answer: RenderedAnswer }

/** On the request itself: a WeakMap keyed by request costs GC time. */
const ofRequest: unique symbol = Symbol('latchkey: request state')

interface Stateful {
  [ofRequest]?: RequestState
}

export function openState(request: FastifyRequestLike & Stateful, body: BodyTap): void {
  request[ofRequest] = {
    body,
    stage: { kind: 'arrived' },
    error: undefined,
    hijacked: false,
    handlerEnded: true,
    handler: Promise.resolve(),
    threw() {},
  }
}

export function stateOf(request: FastifyRequestLike & Stateful): RequestState | undefined {
  return request[ofRequest]
}

/** Runs the handler as Fastify would, and notes when it has ended. */
export function follow<Result>(state: RequestState | undefined, run: () => Result): Result {
  if (state?.stage.kind !== 'running') return run()
  try {
    const result = run()
    // Promises only: a query builder is thenable as well, and would run its query a second time.
    if (result instanceof Promise) followPromise(state, result)
    return result
  } catch (error) {
    state.threw(error)
    throw error
  }
}

function followPromise(state: RequestState, result: Promise<unknown>): void {
  state.handlerEnded = false
  const end = () => void (state.handlerEnded = true)
  state.handler = result.then(end, (error: unknown) => {
    end()
    state.threw(error)
  })
}
