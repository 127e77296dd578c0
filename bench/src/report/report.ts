/** Everything of a run in one place: the JSON for machines, the Markdown for people. */
import type { Conditions } from '../machine/conditions.ts'
import { conditionsSentence } from '../machine/conditions.ts'
import type { Run } from '../scenario.ts'
import type { SectionResult } from '../section.ts'
import { type Figure, median } from '../statistics.ts'
import { type Goals, judge, type Verdict } from './goals.ts'
import { summaryTable } from './summary.ts'

export interface Report {
  readonly conditions: Conditions
  /** The conditions, for people. */
  readonly sentence: string
  /** Cores that other processes kept busy while it measured: the median, or NaN where no section measured it. */
  readonly othersCores: number
  readonly verdicts: readonly Verdict[]
  /** By `section: figure`. */
  readonly figures: ReadonlyMap<string, Figure>
  readonly faults: readonly string[]
  readonly sections: ReadonlyMap<string, SectionResult>
}

export function reportOf(sections: ReadonlyMap<string, SectionResult>, conditions: Conditions, goals: Goals): Report {
  const figures = new Map(
    [...sections].flatMap(([section, { figures }]) =>
      Object.entries(figures).map(([name, found]): [string, Figure] => [`${section}: ${name}`, found]),
    ),
  )
  return {
    conditions,
    sentence: conditionsSentence(conditions),
    othersCores: median(othersIn(sections)),
    verdicts: judge(goals, figures, [...sections.keys()]),
    figures,
    faults: [...sections].flatMap(([section, { faults }]) => faults.map(fault => `${section}: ${fault}`)),
    sections,
  }
}

export function jsonOf({ conditions, sentence, verdicts, figures, faults, sections }: Report): string {
  const data = Object.fromEntries([...sections].map(([name, section]) => [name, section.data]))
  const written = {
    conditions,
    sentence,
    faults,
    goals: verdicts,
    figures: Object.fromEntries(figures),
    sections: data,
  }
  return `${JSON.stringify(written, null, 2)}\n`
}

export function markdownOf({ sentence, othersCores, verdicts, sections, faults }: Report): string {
  const settings = [...new Set([...sections.values()].flatMap(({ settings = [] }) => settings))]
  const parts = [
    '# Benchmark results',
    `${sentence} ${spreadSentence(othersCores)}`,
    '[How it is measured, and how to read it](../../bench/README.md).',
    settings.map(text => `- ${text}`).join('\n'),
    summaryTable(verdicts),
    faults.length === 0
      ? 'After every run each acknowledged key had one completed row, and its handler had run once.'
      : `What did not add up:\n\n${faults.map(fault => `- ${fault}`).join('\n')}`,
    ...[...sections.values()].map(({ markdown }) => markdown),
  ]
  return `${parts.join('\n\n')}\n`
}

function spreadSentence(othersCores: number): string {
  const brackets = 'Brackets hold the lowest and the highest repetition.'
  return Number.isNaN(othersCores)
    ? brackets
    : `${brackets} Other processes kept ${othersCores.toFixed(2)} cores busy meanwhile (median).`
}

/** Of all runs under load, wherever a section has them. */
function othersIn(sections: ReadonlyMap<string, SectionResult>): number[] {
  const found: number[] = []
  const look = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const { othersCores } = value as Partial<Run>
    if (typeof othersCores === 'number') found.push(othersCores)
    else Object.values(value).forEach(look)
  }
  for (const { data } of sections.values()) look(data)
  return found
}
