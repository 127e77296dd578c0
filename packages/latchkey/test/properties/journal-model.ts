/** The journal of the model: an input, and effects that are open, done, or known not to have happened. */
import type { Journal, StepState, UnreadableJournal } from '../../src/ports/steps.ts'

export interface ModelStep {
  state: StepState
  epoch: number
  /** The epoch of the downstream key that the provider was given last. */
  givenIn: number
  firstTry: number
  windowMs: number | undefined
  result: string | undefined
}

export interface ModelJournal {
  readonly work: string
  readonly deadlineAt: number | undefined
  readonly steps: Map<number, ModelStep>
}

/** The effect in doubt: at most one is open at a time. */
export function openEffect(journal: ModelJournal | undefined): { position: number; step: ModelStep } | undefined {
  for (const [position, step] of journal?.steps ?? []) if (step.state === 'open') return { position, step }
  return undefined
}

export function begun(work: string, deadlineAt: number | undefined): ModelJournal {
  return { work, deadlineAt, steps: new Map() }
}

/** What was begun keeps its input; an absent or expired row has no journal to continue. */
export function goOn(journal: ModelJournal | undefined, work: string | undefined): ModelJournal | undefined {
  return journal ?? (work === undefined ? undefined : begun(work, undefined))
}

function repeatable(step: ModelStep, nowMs: number): boolean {
  return step.state === 'open' && step.windowMs !== undefined && nowMs < step.firstTry + step.windowMs
}

export function mayHaveHappened(journal: ModelJournal | undefined, nowMs: number): boolean {
  return [...(journal?.steps.values() ?? [])].some(step => step.state === 'open' && !repeatable(step, nowMs))
}

/** It is known that nothing happened. */
export function triedAgain(journal: ModelJournal | undefined, epochs: number): void {
  for (const step of journal?.steps.values() ?? []) {
    if (step.state !== 'open') continue
    step.state = 'again'
    step.epoch += epochs
  }
}

export function openIntent(
  journal: ModelJournal,
  { position, windowMs, nowMs }: { position: number; windowMs: number | undefined; nowMs: number },
): 'written' | 'claim-lost' {
  const step = journal.steps.get(position)
  if (step?.state === 'done') return 'claim-lost'
  const firstTry = step?.state === 'open' ? step.firstTry : nowMs
  const epoch = step?.epoch ?? 0
  journal.steps.set(position, { state: 'open', epoch, givenIn: epoch, firstTry, windowMs, result: undefined })
  return 'written'
}

export function recordResult(journal: ModelJournal, position: number, result: string): 'written' | 'claim-lost' {
  const step = journal.steps.get(position)
  if (step?.state !== 'open') return step?.state === 'done' ? 'written' : 'claim-lost'
  step.state = 'done'
  step.result = result
  return 'written'
}

export function viewOfModel(journal: ModelJournal | undefined, nowMs: number): object | undefined {
  if (journal === undefined) return undefined
  const steps = [...journal.steps].sort(([left], [right]) => left - right)
  return {
    work: journal.work,
    overdue: journal.deadlineAt !== undefined && nowMs >= journal.deadlineAt,
    steps: steps.map(([position, step]) => {
      const { state, epoch, result } = step
      return { position, state, epoch, result, repeatable: repeatable(step, nowMs) }
    }),
  }
}

export function viewOfJournal(journal: Journal | UnreadableJournal | undefined): object | undefined {
  if (journal?.steps === undefined) return journal
  const shown = journal.steps.map(({ position, state, epoch, value: result, repeatable }) => {
    return { position, state, epoch, result, repeatable }
  })
  return { work: journal.work.input, overdue: journal.overdue, steps: shown }
}
