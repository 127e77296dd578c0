/** The rates of the fleet, added up for one figure and for one line. */
import type { Overview } from 'latchkey/admin'

export type RateRows = Overview['rates']

export function sumOf(rates: RateRows, metric: string): number {
  return rates.filter(rate => rate.metric === metric).reduce((sum, { count }) => sum + count, 0)
}

export function percentText(part: number, whole: number): string {
  if (whole === 0) return '–'
  const percent = (100 * part) / whole
  return `${percent === 0 || percent >= 1 ? percent.toFixed(1) : percent.toFixed(2)} %`
}

/** For each minute from the first to the last, also those in which nothing was counted. */
export function byMinute(rates: RateRows, metric: string): { readonly minutes: number[]; readonly counts: number[] } {
  const own = rates.filter(rate => rate.metric === metric)
  if (own.length === 0) return { minutes: [], counts: [] }
  const first = Math.min(...own.map(({ minuteMs }) => minuteMs))
  const last = Math.max(...own.map(({ minuteMs }) => minuteMs))
  const minutes = Array.from({ length: Math.floor((last - first) / 60_000) + 1 }, (_, at) => first + at * 60_000)
  return {
    minutes,
    counts: minutes.map(minute =>
      sumOf(
        own.filter(({ minuteMs }) => minuteMs === minute),
        metric,
      ),
    ),
  }
}
