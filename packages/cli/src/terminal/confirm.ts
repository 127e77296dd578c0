/** What is about to be done, shown and confirmed before it is. */
import type { Context } from '../program/context.ts'
import { CliError, exits, usage } from '../program/exit.ts'

export interface Plan {
  /** What is done to each, such as `look up`. */
  readonly act: string
  readonly matched: number
  /** Why others are left out, with how many. */
  readonly excluded?: Readonly<Record<string, number>>
  /** A line for each; the first five are shown. */
  readonly sample: readonly string[]
  /** Said before the question, where an act cannot be undone. */
  readonly warning?: string
}

const sampleMax = 5
/** Above this a "y" comes too easily: the number has to be typed. */
const typedAbove = 20

/** Call it before anything is read: without a terminal and without --yes, nothing may be asked. */
export function mustBeAskable({ terminal, flags }: Context): void {
  if (terminal.canAsk || flags.has('yes') || flags.has('dry-run')) return
  throw usage('this needs a confirmation, and there is no terminal to ask on: give --yes, or look first with --dry-run')
}

/** `dry-run`: the plan was shown, and that is all. */
export async function confirmPlan(context: Context, plan: Plan): Promise<'go' | 'dry-run'> {
  const { out, flags } = context
  if (flags.has('dry-run')) {
    out.value(plan, () => planLines(plan))
    return 'dry-run'
  }
  if (flags.has('yes')) return 'go'
  for (const line of planLines(plan)) out.error(line)
  await askFor(context, plan)
  return 'go'
}

function planLines({ act, matched, excluded = {}, sample, warning }: Plan): readonly string[] {
  return [
    `${act}: ${matched}`,
    ...Object.entries(excluded).map(([why, count]) => `left out: ${count} (${why})`),
    ...sample.slice(0, sampleMax).map(line => `  ${line}`),
    ...(matched > sampleMax && sample.length > 0
      ? [`  … and ${matched - Math.min(sampleMax, sample.length)} more`]
      : []),
    ...(warning === undefined ? [] : [warning]),
  ]
}

async function askFor({ terminal }: Context, { matched }: Plan): Promise<void> {
  const isTyped = matched > typedAbove
  const answer = await terminal.ask(isTyped ? `Type ${matched} to continue: ` : 'Continue? [y/N] ')
  const isYes = isTyped ? answer.trim() === String(matched) : /^y(?:es)?$/i.test(answer.trim())
  if (!isYes) throw new CliError(exits.no, 'not-confirmed', 'not confirmed; nothing was done')
}
