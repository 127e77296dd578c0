/** Figures out of a scenario: one subject over another, repetition by repetition. */
import type { Run, ScenarioResult } from '../scenario.ts'
import { type Figure, figure, pairwise } from '../statistics.ts'

export interface Comparison {
  readonly of: string
  readonly over: string
  readonly by?: (run: Run) => number
  readonly combine?: (a: number, b: number) => number
  readonly unit?: string
  readonly what: string
}

/** Undefined where one of the two was left out. */
export function compare(
  result: ScenarioResult,
  { of, over, by = run => run.requestsPerSecond, combine, unit = '×', what }: Comparison,
): Figure | undefined {
  const values = (id: string) => result.subjects.find(subject => subject.id === id)?.runs.map(by) ?? []
  const [a, b] = [values(of), values(over)]
  return a.length === 0 || b.length === 0 ? undefined : figure(pairwise(a, b, combine), unit, what)
}

export function comparisons(
  result: ScenarioResult,
  wanted: Readonly<Record<string, Comparison>>,
): Record<string, Figure> {
  return Object.fromEntries(
    Object.entries(wanted).flatMap(([name, comparison]) => {
      const found = compare(result, comparison)
      return found === undefined ? [] : [[name, found]]
    }),
  )
}
