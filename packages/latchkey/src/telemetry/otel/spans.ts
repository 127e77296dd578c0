/** Spans of what the engine traces: named by operation and by the hash of the identity, never by a key. */
import type { Telemetry } from '../../ports/telemetry.ts'
import { type OtelSpan, type OtelTracer, spanError } from './driver.ts'

export function tracedBy(tracer: OtelTracer): NonNullable<Telemetry['trace']> {
  return (name, { operation = '', identity = '' }, work) => {
    const attributes = { 'latchkey.operation': operation, 'latchkey.identity': identity }
    tracer.startActiveSpan(`latchkey.${name}`, { attributes }, span => {
      void work().then(error => end(span, error))
    })
  }
}

function end(span: OtelSpan, error: unknown): void {
  try {
    // Not its message: that is for the handler's own log, and may name the request.
    if (error !== undefined) span.setStatus({ code: spanError, message: kindOf(error) })
    span.end()
  } catch {
    // A span that cannot be ended changes no outcome.
  }
}

function kindOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return typeof error
  if ('code' in error && typeof error.code === 'string') return error.code
  return 'name' in error && typeof error.name === 'string' ? error.name : 'Error'
}
