/** The telemetry of those who gave none: reports go to `console.warn`, so that a forgotten `migrate()` does not pass in silence. */
import { type Clock, systemClock } from './clock.ts'
import { errorText } from './errors.ts'
import { type Attributes, silentTelemetry, type Telemetry } from './telemetry.ts'

/** A cause that lasts is written once a minute: often enough to be seen, rarely enough to leave the rest of the log readable. */
const quietMs = 60_000
/** Different causes a minute, which bounds memory and the log. Far more than a process has operations that can fail in different ways. */
const causesMax = 100

/** Longer than any error of ours. What a handler throws may repeat a whole body. */
const errorCharactersMax = 2_000

type Reported = Attributes & { readonly error?: unknown }

/** Counts and observations are dropped. Never throws. */
export function consoleTelemetry({
  clock = systemClock,
}: { readonly clock?: Pick<Clock, 'monotonicMs'> } = {}): Telemetry {
  const lines = lineLimit()
  return {
    ...silentTelemetry,
    report(message, attributes) {
      try {
        const more = lines.admit(causeOf(message, attributes), clock.monotonicMs())
        if (more !== undefined) console.warn(oneLine(lineOf(message, attributes, more)))
      } catch {
        // An error whose getters throw, or a console that does: neither may change an outcome.
      }
    },
  }
}

/** Not the error's message: it may name the request, and each would be a cause of its own. */
function causeOf(message: string, { operation, error }: Reported): string {
  return JSON.stringify([message, operation, codeOf(error)])
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('code' in error && typeof error.code === 'string') return error.code
  return 'name' in error && typeof error.name === 'string' ? error.name : undefined
}

function lineOf(message: string, { operation, identity, scope, error }: Reported, more: number): string {
  const about = operation === undefined ? '' : `${operation}: `
  const why = error === undefined ? '' : `: ${errorText(error).slice(0, errorCharactersMax)}`
  const whose = scope === undefined ? '' : `, scope ${JSON.stringify(scope)}`
  const row = identity === undefined ? '' : ` (row ${identity}${whose})`
  const others = more === 0 ? '' : ` (${more} more since this was last written)`
  return `[latchkey] ${about}${message}${why}${row}${others}`
}

/** An error may repeat what a client sent, which must not begin a line of its own or steer a terminal. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, escaped)
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

interface LineLimit {
  /** How many lines of this cause were left out before this one. Undefined: leave this one out as well. */
  admit(cause: string, nowMs: number): number | undefined
}

function lineLimit(): LineLimit {
  const causes = new Map<string, { readonly writtenAtMs: number; leftOut: number }>()
  return {
    admit(cause, nowMs) {
      const known = causes.get(cause)
      if (known !== undefined && nowMs - known.writtenAtMs < quietMs) {
        known.leftOut += 1
        return undefined
      }
      causes.delete(cause)
      // In the order they were written: the first is the oldest.
      for (const [old, { writtenAtMs }] of causes) {
        if (nowMs - writtenAtMs < quietMs) break
        causes.delete(old)
      }
      if (causes.size >= causesMax) return undefined
      causes.set(cause, { writtenAtMs: nowMs, leftOut: 0 })
      return known?.leftOut ?? 0
    },
  }
}
