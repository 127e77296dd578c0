/** What Latchkey answers in place of the handler: a replay, the 202 of deferred work, or a refusal. */
import type { Answer } from '../../../engine/answer.ts'
import type { OperationEngine } from '../../../engine/operation.ts'
import { unreachable } from '../../../ports/errors.ts'
import type { Header } from '../../../ports/outcome.ts'
import { idempotencyKeyExpiresAt } from '../../../wire/headers.ts'
import type { RenderedAnswer } from '../../../wire/rendered-answer.ts'
import type { RequestView } from '../request.ts'
import { renderQueued } from './accepted.ts'
import { renderRefusal } from './refusal.ts'
import { observeReplay, renderReplay } from './replay.ts'

/** The handler did not run for this caller. */
export type OwnAnswer = Exclude<Answer, { readonly kind: 'executed' }>

/** A promise only for a replay, which may have to be decoded. */
export function renderOwn<C>(
  owner: OperationEngine<C, never>,
  view: RequestView<C>,
  answer: OwnAnswer,
): RenderedAnswer | Promise<RenderedAnswer> {
  const { settings, shared } = owner
  switch (answer.kind) {
    case 'replayed': {
      observeReplay(owner, view.context, answer.record)
      const { status, headers, body = new Uint8Array() } = answer.outcome
      const expires = shared.http.expiresHeader === true ? expiresHeader(answer.record.expiresAtMs) : undefined
      const replay = { status, headers: expires === undefined ? headers : [...headers, expires], body }
      return renderReplay(replay, acceptEncodingOf(view))
    }
    case 'accepted':
      return renderQueued(answer.id, { view, http: shared.http })
    case 'refused':
      reportCause(owner, answer)
      return renderRefusal(answer.refusal, {
        host: shared,
        context: view.context,
        accept: settings.onInProgress === 'accept',
      })
    default:
      return unreachable(answer)
  }
}

/** An HTTP-date (RFC 9110, section 5.6.7): what every HTTP library can already read. */
export function expiresHeader(atMs: number): Header {
  return [idempotencyKeyExpiresAt, new Date(atMs).toUTCString()]
}

function acceptEncodingOf(view: RequestView<unknown>): string | undefined {
  const lines = view.header('Accept-Encoding')
  return lines.length === 0 ? undefined : lines.join(', ')
}

/** Our 504 replaces the handler's error, and the framework's own error handler may never see it. */
function reportCause<C>(
  { name, shared }: OperationEngine<C, never>,
  { refusal }: Extract<Answer, { kind: 'refused' }>,
): void {
  if (refusal.cause === undefined) return
  shared.telemetry.report(`answered ${refusal.code}`, { operation: name, error: refusal.cause })
}
