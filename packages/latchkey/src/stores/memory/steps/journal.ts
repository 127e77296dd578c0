/** The input and the steps of phased work, beside the key's row. The caller has checked who may write them. */
import type { EffectRef, Subject } from '../../../ports/reconciliation.ts'
import type { EffectDone, Intent, Journal, PhaseDone, Step, WorkInput } from '../../../ports/steps.ts'
import type { Row } from '../keys/row.ts'
import type { Writable } from '../tables.ts'

/** Never changed in place, only replaced. */
export interface JournalRow {
  readonly input: StoredInput | undefined
  /** In the order of their positions. */
  readonly steps: readonly StepRow[]
}

interface StoredInput extends Pick<WorkInput, 'version' | 'input'> {
  readonly deadlineAtMs: number | undefined
}

export interface StepRow extends Omit<Step, 'repeatable'> {
  readonly openedAtMs: number
  /** Absent: the provider does not recognise a repetition. */
  readonly repeatUntilMs: number | undefined
  /** The downstream key of its latest intent, and the epoch it was made of. */
  readonly key: string | undefined
  readonly keyEpoch: number
}

type Journals = Pick<Writable, 'journals' | 'now'>

const emptyJournal: JournalRow = { input: undefined, steps: [] }

export function stepsOf({ journals }: Journals, id: string): readonly StepRow[] {
  return journals.get(id)?.steps ?? []
}

export function hasInput({ journals }: Journals, id: string): boolean {
  return journals.get(id)?.input !== undefined
}

/** Its deadline has passed before any step began. */
export function isOverdue(tables: Journals, id: string): boolean {
  const { input, steps } = tables.journals.get(id) ?? emptyJournal
  return steps.length === 0 && input !== undefined && hasPassed(input, tables.now())
}

function hasPassed({ deadlineAtMs }: StoredInput, nowMs: number): boolean {
  return deadlineAtMs !== undefined && deadlineAtMs <= nowMs
}

function isRepeatable({ state, repeatUntilMs }: StepRow, nowMs: number): boolean {
  return state === 'open' && repeatUntilMs !== undefined && repeatUntilMs > nowMs
}

/** The row has an open intent that may not be repeated: no process can continue with it. */
export function isStuck(tables: Journals, id: string): boolean {
  const nowMs = tables.now()
  return stepsOf(tables, id).some(step => step.state === 'open' && !isRepeatable(step, nowMs))
}

export function readJournal(tables: Journals, id: string): Journal | undefined {
  const { input, steps } = tables.journals.get(id) ?? emptyJournal
  if (input === undefined) return undefined
  const nowMs = tables.now()
  return {
    work: { version: input.version, input: input.input },
    overdue: hasPassed(input, nowMs),
    steps: steps.map(step => toStep(step, nowMs)),
  }
}

function toStep(step: StepRow, nowMs: number): Step {
  const { position, name, kind, state, value, epoch } = step
  return { position, name, kind, state, value, epoch, repeatable: isRepeatable(step, nowMs) }
}

/** Work that has begun keeps the input it began with, and its deadline. */
export function keepInput(tables: Journals, id: string, { version, input, deadlineInMs }: WorkInput): void {
  const journal = tables.journals.get(id) ?? emptyJournal
  if (journal.input !== undefined) return
  const deadlineAtMs = deadlineInMs === undefined ? undefined : tables.now() + deadlineInMs
  tables.journals.set(id, { ...journal, input: { version, input, deadlineAtMs } })
}

function putStep({ journals }: Journals, id: string, step: StepRow): void {
  const journal = journals.get(id) ?? emptyJournal
  const others = journal.steps.filter(({ position }) => position !== step.position)
  const steps = [...others, step].sort((left, right) => left.position - right.position)
  journals.set(id, { ...journal, steps })
}

function stepAt(tables: Journals, id: string, position: number): StepRow | undefined {
  return stepsOf(tables, id).find(step => step.position === position)
}

/** False: the position is taken, so this phase has run before. */
export function addPhase(tables: Journals, id: string, { position, name, value }: PhaseDone): boolean {
  if (stepAt(tables, id, position) !== undefined) return false
  const phase = { position, name, kind: 'phase', state: 'done', value, epoch: 0 } as const
  putStep(tables, id, { ...phase, openedAtMs: tables.now(), repeatUntilMs: undefined, key: undefined, keyEpoch: 0 })
  return true
}

/**
 * False: the step there is another one, of another epoch, or done. An open intent may have reached the provider, so its window
 * counts from its first try; one that is known not to have happened begins anew.
 */
export function putIntent(tables: Journals, id: string, { position, name, epoch, key, windowMs }: Intent): boolean {
  const before = stepAt(tables, id, position)
  if (before !== undefined) {
    const isSame = before.kind === 'effect' && before.name === name && before.epoch === epoch
    if (!isSame || before.state === 'done') return false
  }
  const openedAtMs = before?.state === 'open' ? before.openedAtMs : tables.now()
  const repeatUntilMs = windowMs === undefined ? undefined : openedAtMs + windowMs
  const intent = { position, name, kind: 'effect', state: 'open', value: undefined, epoch } as const
  putStep(tables, id, { ...intent, openedAtMs, repeatUntilMs, key, keyEpoch: epoch })
  return true
}

/** Done already: the reply to the first write was lost, and the first value stays. False: there is no such effect. */
export function finishEffect(tables: Journals, id: string, { position, value }: EffectDone): boolean {
  const step = stepAt(tables, id, position)
  if (step?.kind !== 'effect' || step.state === 'again') return false
  if (step.state === 'open') putStep(tables, id, { ...step, state: 'done', value })
  return true
}

/** The effect in doubt. Steps are reached in order: it is the first one that is open. */
export function openEffect(tables: Journals, { id, recovery }: Row): EffectRef | undefined {
  const open = recovery === 'resume' ? stepsOf(tables, id).find(({ state }) => state === 'open') : undefined
  return open && { position: open.position, name: open.name, epoch: open.epoch }
}

export function findEffect({ journals }: Journals, downstreamKey: string): Subject | undefined {
  const found = [...journals.entries()]
    .flatMap(([id, { steps }]) => steps.map(step => ({ id, step })))
    .filter(({ step }) => step.key === downstreamKey)
    .sort((left, right) => right.step.openedAtMs - left.step.openedAtMs)[0]
  if (found === undefined) return undefined
  const { position, name, keyEpoch: epoch } = found.step
  return { id: found.id, effect: { position, name, epoch } }
}

/** Known not to have happened: by its owner, who may use its key again, or by evidence, after which the key is a new one. */
export function allowAgain(tables: Journals, id: string, epoch: 'same-epoch' | 'next-epoch'): void {
  const raised = epoch === 'next-epoch' ? 1 : 0
  for (const step of stepsOf(tables, id)) {
    if (step.state === 'open') putStep(tables, id, { ...step, state: 'again', epoch: step.epoch + raised })
  }
}

/** As `allowAgain` by evidence, for one effect. */
export function raiseEpoch(tables: Journals, id: string, position: number): void {
  const step = stepAt(tables, id, position)
  if (step?.state === 'open') putStep(tables, id, { ...step, state: 'again', epoch: step.epoch + 1 })
}
