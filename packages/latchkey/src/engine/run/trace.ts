/** Spans around what the engine does for one request, where the telemetry wants them. */
import type { Identity } from '../../ports/store.ts'
import type { SpanName, Telemetry } from '../../ports/telemetry.ts'
import { errorOf, type ExecuteRequest, type Work } from '../answer.ts'

/** The handler, inside a span where there are spans: what it calls is traced below it. */
export function workInSpan<X>(telemetry: Telemetry, { identity }: ExecuteRequest, work: Work<X>): Work<X> {
  if (telemetry.trace === undefined) return work
  return execution => inSpan(telemetry, { span: 'handler', identity, run: () => work(execution), errorOf })
}

interface Spanned<T> {
  readonly span: SpanName
  readonly identity: Identity
  readonly run: () => Promise<T>
  /** The error that a value stands for. Absent: none does. */
  readonly errorOf?: (value: T) => unknown
}

/** Runs it once, whatever the telemetry does. Call it only where there is a `trace`: the closures cost what an untraced request need not pay. */
export function inSpan<T>(telemetry: Telemetry, { span, identity, run, errorOf: mark }: Spanned<T>): Promise<T> {
  let begun: Promise<T> | undefined
  const begin = () => (begun ??= promised(run))
  const { operation, id } = identity
  telemetry.trace?.(span, { operation, identity: id }, () =>
    begin().then(
      value => mark?.(value),
      (error: unknown) => error,
    ),
  )
  return begin()
}

/** A port that throws instead of rejecting. */
function promised<T>(run: () => Promise<T>): Promise<T> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}
