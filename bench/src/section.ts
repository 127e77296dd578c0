/** A part of the benchmark that can be run alone: `npm run bench -- --only saturation`. */
import type { Context } from './context.ts'
import type { Figure } from './statistics.ts'

export interface SectionResult {
  /** Tables and sentences, as Markdown, headed by the section's title. */
  readonly markdown: string
  /** By the name that goals.json uses, without the section's. */
  readonly figures: Readonly<Record<string, Figure>>
  /** What does not add up: rows that are missing, handlers that ran twice. Fails the run. */
  readonly faults: readonly string[]
  /** What the stores say about their durability. */
  readonly settings?: readonly string[]
  /** Everything that was measured. */
  readonly data: unknown
}

export interface Section {
  readonly name: string
  /** It is also run when this one is asked for. */
  readonly partOf?: string
  /** It takes too long for a whole run. */
  readonly onlyNamed?: true
  /** What is measured, in a sentence. */
  readonly what: string
  run(context: Context): Promise<SectionResult>
}
