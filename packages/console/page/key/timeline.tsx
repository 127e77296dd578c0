/** What happened to a row, in an order that can be read aloud. */
import type { TimelineEntry } from 'latchkey/admin'
import type { Problem } from '../api/request.ts'
import { clockText, dayText } from '../parts/duration.ts'
import { ProblemNote } from '../parts/problem.tsx'

export function Timeline({
  entries,
  problem,
}: {
  entries: readonly TimelineEntry[] | undefined
  problem: Problem | undefined
}) {
  return (
    <section>
      <h2 id="timeline">What happened</h2>
      <ProblemNote problem={problem} />
      <div class="scroll" role="region" aria-labelledby="timeline" tabIndex={0}>
        <table class="timeline">
          <thead>
            <tr>
              <th scope="col">when (UTC)</th>
              <th scope="col">what</th>
              <th scope="col">story</th>
            </tr>
          </thead>
          <tbody>
            {entries?.map((entry, at) => (
              <tr key={at} class={entry.kind === 'act' && entry.refused !== undefined ? 'refused' : ''}>
                <td>
                  {entry.atMs === undefined ? (
                    '–'
                  ) : (
                    <time dateTime={new Date(entry.atMs).toISOString()}>
                      {dayText(entry.atMs)} {clockText(entry.atMs)}
                    </time>
                  )}
                </td>
                <td>{entry.kind === 'step' ? entry.step : entry.kind}</td>
                <td>{storyOf(entry)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

export function storyOf(entry: TimelineEntry): string {
  switch (entry.kind) {
    case 'created':
      return 'The first request with this key arrived.'
    case 'completed':
      return 'The outcome was stored; every later request gets it.'
    case 'expires':
      return 'The row may be deleted from then on.'
    case 'step':
      return `${entry.name}: ${entry.state}${entry.epoch > 0 ? `, epoch ${entry.epoch}` : ''}`
    case 'evidence':
      return `${entry.source}${entry.effect === undefined ? '' : ` about ${entry.effect}`}: ${entry.verdict}${entry.applied ? ', which settled the row' : ''}`
    case 'reference':
      return `The handler recorded the reference ${entry.text}.`
    case 'unknown':
      return `It is unknown whether it happened: ${entry.cause}.`
    case 'act':
      return actStory(entry)
  }
}

function actStory({ by, act, reason, from, to, evidence, refused, source }: Extract<TimelineEntry, { kind: 'act' }>) {
  const moved = from !== undefined && to !== undefined && from !== to ? `, ${from} → ${to}` : ''
  const relied = evidence === undefined ? '' : `, evidence ${evidence}`
  const through = source === undefined ? '' : ` (${source})`
  return `${by}${through}: ${act}${refused === undefined ? '' : `, REFUSED: ${refused}`}${moved}${relied}. ${reason}`
}
