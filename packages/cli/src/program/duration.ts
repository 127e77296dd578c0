/** Durations as people write and read them: 90s, 2h 14m. */
import { usage } from './exit.ts'

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `what`: where it was given, for the error. */
export function parseDuration(what: string, text: string): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim()) ?? []
  const ms = Number(amount) * (unitMs[unit] ?? Number.NaN)
  if (amount !== '' && Number.isFinite(ms)) return Math.round(ms)
  throw usage(`${what} must be a duration such as 500ms, 30s, 15m, 2h or 1d (got ${text})`)
}

/** The two largest units: `2h 14m`. */
export function durationText(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1_000)
  if (seconds < 1) return `${Math.max(0, Math.round(ms))}ms`
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor((seconds % 86_400) / 3_600), 'h'],
    [Math.floor((seconds % 3_600) / 60), 'm'],
    [seconds % 60, 's'],
  ]
  const first = parts.findIndex(([amount]) => amount > 0)
  return parts
    .slice(first, first + 2)
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join(' ')
}
