/** Ages that grow by themselves. One timer writes them all, so that a list of a thousand rows is not drawn again every second. */
import { durationText, utcText } from './duration.ts'

const everyMs = 1_000

/** `ageMs` as the server gave it, `readAtMs` when that was, on the clock of `performance.now`. */
export function Age({ ageMs, readAtMs, after = '' }: { ageMs: number; readAtMs: number; after?: string }) {
  const since = Math.round((readAtMs - ageMs) / everyMs) * everyMs
  const text = `${durationText(performance.now() - since)}${after}`
  return (
    <time dateTime={isoAt(since)} title={utcText(wallAt(since))} data-since={since} data-after={after}>
      {text}
    </time>
  )
}

/** When something is due: `in 4 min`, or `now`. */
export function Due({ inMs, readAtMs }: { inMs: number; readAtMs: number }) {
  const at = Math.round((readAtMs + inMs) / everyMs) * everyMs
  return (
    <time dateTime={isoAt(at)} title={utcText(wallAt(at))} data-due={at}>
      {dueText(at)}
    </time>
  )
}

export function Moment({ atMs }: { atMs: number }) {
  return <time dateTime={new Date(atMs).toISOString()}>{utcText(atMs)}</time>
}

function wallAt(monotonicMs: number): number {
  return performance.timeOrigin + monotonicMs
}

function isoAt(monotonicMs: number): string {
  return new Date(wallAt(monotonicMs)).toISOString()
}

function dueText(at: number): string {
  const leftMs = at - performance.now()
  return leftMs <= 0 ? 'now' : `in ${durationText(leftMs)}`
}

function tick(): void {
  if (document.hidden) return
  for (const element of document.querySelectorAll<HTMLElement>('time[data-since], time[data-due]')) {
    const { since, due, after = '' } = element.dataset
    const text = due === undefined ? `${durationText(performance.now() - Number(since))}${after}` : dueText(Number(due))
    const node = element.firstChild
    if (node instanceof Text && node.data !== text) node.data = text
  }
}

setInterval(tick, everyMs)
