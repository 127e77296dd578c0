/** The report printed at the end. */
import type { Violation } from './check.ts'
import type { Cache, Evidence } from './evidence.ts'

const shownMax = 30

export function reportLines(evidence: Evidence, violations: readonly Violation[]): string {
  const { innocents, enemies, runs, app, cache, rows } = evidence
  const lost = Object.values(innocents.losses).reduce((sum, times) => sum + times, 0)
  const counts = {
    'innocent requests': innocents.requests,
    'innocent operations acknowledged': innocents.acknowledged.length,
    'innocent requests lost': lost,
    'identities that ran': runs.size,
    'identities that ran twice': [...runs.values()].filter(each => each.length > 1).length,
    'runs without a claim': [...runs.values()].flat().filter(({ fence }) => fence === 0).length,
    'process deaths': app.deaths.length,
    [`peak memory, MB (at most ${app.peakMbMax})`]: app.peakMb,
    'rows unknown': rows.unknown,
    'rows not at rest': rows.unfinished,
    ...(cache && { 'answered from the cache': cache.hits, ...namedFaults(cache) }),
  }
  return [
    ...Object.entries(counts).map(([name, value]) => `${name.padEnd(36)} ${String(value).padStart(7)}`),
    '',
    ...Object.entries(enemies).map(
      ([name, { attacks, whole, heard }]) =>
        `${name.padEnd(16)} ${attacks} attacks, ${whole} completed: ${summaryOf(heard)}`,
    ),
    '',
    ...violations.slice(0, shownMax).map(({ kind, detail }) => `${kind}: ${detail}`),
    ...(violations.length > shownMax ? [`… and ${violations.length - shownMax} more`] : []),
    violations.length === 0 ? 'PASSED' : 'FAILED',
  ].join('\n')
}

function namedFaults({ faults }: Cache): Record<string, number> {
  return Object.fromEntries(Object.entries(faults).map(([fault, times]) => [`cache ${fault}`, times]))
}

function summaryOf(heard: Readonly<Record<string, number>>): string {
  return Object.entries(heard)
    .map(([what, times]) => `${what} × ${times}`)
    .join(', ')
}
