/** The answer of a handler on Node's response, held back until the exchange has decided what the client gets. */
import type { Attempt } from '../../engine/answer.ts'
import type { RenderedAnswer } from '../../wire/problem.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { attemptOfCapture, type CaptureEnd, captureResponse } from '../node/capture.ts'
import type { NodeRequest, NodeResponse } from '../node/driver.ts'

export interface HeldAnswer {
  /** Settles once the handler has ended the response, in whatever way. Never rejects. */
  readonly ended: Promise<CaptureEnd>
  /**
   * Set it when the handler threw after it had answered, and that answer does not hold: the rows of an atomic operation are rolled
   * back. The client gets a 500 instead.
   */
  isVoid: boolean
  /** `replaced`: the client got another answer than the handler's. */
  readonly sent: 'no' | 'released' | 'replaced'
  /** How the handler ended. `error`: what the answer was rendered from, if the handler threw. */
  attempt(end: CaptureEnd, error: unknown): Attempt
  /** Sends the answer before it is stored, for a framework that answered on behalf of a handler that still runs. */
  sendNow(): void
  /** Sends what the exchange decided, or a 500 where it failed and there is no result. */
  conclude(result?: Exchange): void
}

/**
 * Call it right before the handler runs. `over` completes an answer of ours where the framework keeps headers beside the response: see
 * `answerOver`.
 */
export function holdAnswer(
  res: NodeResponse,
  req: NodeRequest,
  over: (answer: RenderedAnswer) => RenderedAnswer = answer => answer,
): HeldAnswer {
  const capture = captureResponse(res, req)
  const held: { -readonly [Name in keyof HeldAnswer]: HeldAnswer[Name] } = {
    ended: capture.ended,
    isVoid: false,
    sent: 'no',
    attempt: (end, error) => (held.isVoid ? { kind: 'threw', error } : attemptOfCapture(end, error)),
    sendNow() {
      held.sent = 'released'
      capture.release([])
    },
    conclude(result) {
      if (held.sent !== 'no') return
      if (result?.kind === 'release' && !held.isVoid) {
        held.sent = 'released'
        return capture.release(result.headers)
      }
      held.sent = 'replaced'
      capture.replace(over(result?.kind === 'send' ? result.answer : serverError))
      // A handler whose transaction timed out may still be writing. Its errors must not end the process.
      res.on('error', () => {})
    },
  }
  return held
}

const serverError: RenderedAnswer = { status: 500, headers: [], body: new Uint8Array() }

/** A failure that was answered on behalf of a handler that may still run: a retry must not run beside it. */
export function hasFailed(end: CaptureEnd): boolean {
  if (end.kind === 'broken') return true
  return (end.kind === 'whole' ? end.response.status : end.status) >= 500
}

/** What a handler threw, as an error: frameworks take undefined and null for no error. */
export function thrownError(thrown: unknown): unknown {
  return thrown ?? new Error('the handler threw undefined or null')
}
