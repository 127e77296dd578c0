/** JSON bodies that must not be confused once parsed, and what Latchkey reports about them. */
import { silentTelemetry, type Telemetry } from '../../src/ports/telemetry.ts'

/** Pairs of bodies that differ although they look alike. */
export const lookalikes: readonly (readonly [string, string])[] = [
  ['5', '"5"'],
  ['true', '"true"'],
  ['null', '""'],
  ['null', '"null"'],
  ['{"a":1}', '"{\\"a\\":1}"'],
]

/** 18 KB of nested arrays. */
export const deep: string = '['.repeat(9_000) + ']'.repeat(9_000)

export function reportsInto(reports: string[]): Telemetry {
  // A key that a test uses again on purpose says nothing about how its body was read.
  const isAboutBodies = (message: string) => !message.startsWith('a client used a key again')
  return { ...silentTelemetry, report: message => void (isAboutBodies(message) && reports.push(message)) }
}
