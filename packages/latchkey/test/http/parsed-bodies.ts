/** JSON bodies that a parser's result must not mix up, and what Latchkey says of them in the log. */
import { silentTelemetry, type Telemetry } from '../../src/ports/telemetry.ts'

/** Two bodies each that differ although one looks like the other. */
export const lookalikes: readonly (readonly [string, string])[] = [
  ['5', '"5"'],
  ['true', '"true"'],
  ['null', '""'],
  ['null', '"null"'],
  ['{"a":1}', '"{\\"a\\":1}"'],
]

/** 18 KB of arrays, each inside of the other. */
export const deep: string = '['.repeat(9_000) + ']'.repeat(9_000)

export function reportsInto(reports: string[]): Telemetry {
  return { ...silentTelemetry, report: message => void reports.push(message) }
}
