/** Raw columns of an input and of its steps, as SQL drivers give them, to a journal. Pure: the store's time comes in. */
import type { Journal, Step, UnreadableJournal } from '../../ports/steps.ts'
import { stepKindOf, stepStateOf } from './codes.ts'
import type { RawNumber } from './record-row.ts'

export interface InputRow {
  readonly version: RawNumber
  readonly input: string
  /** Milliseconds since 1970; null: it may begin whenever it does. */
  readonly deadline_at_ms: RawNumber | null
}

export interface StepRow {
  readonly position: RawNumber
  readonly name: string
  readonly kind: RawNumber
  readonly state: RawNumber
  readonly result: string | null
  readonly epoch: RawNumber
  /** Milliseconds since 1970; null: the provider does not recognise a repetition. */
  readonly repeat_until_ms: RawNumber | null
}

/** `steps` in the order of their positions. */
export function journalOf(work: InputRow, steps: readonly StepRow[], nowMs: number): Journal | UnreadableJournal {
  try {
    return readableJournal(work, steps, nowMs)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { work: undefined, overdue: undefined, steps: undefined, why }
  }
}

function readableJournal(work: InputRow, steps: readonly StepRow[], nowMs: number): Journal {
  return {
    work: { version: Number(work.version), input: work.input },
    overdue: work.deadline_at_ms !== null && Number(work.deadline_at_ms) <= nowMs,
    steps: steps.map(row => stepOf(row, nowMs)),
  }
}

function stepOf(row: StepRow, nowMs: number): Step {
  const state = stepStateOf(Number(row.state))
  return {
    position: Number(row.position),
    name: row.name,
    kind: stepKindOf(Number(row.kind)),
    state,
    value: state === 'done' ? (row.result ?? undefined) : undefined,
    epoch: Number(row.epoch),
    repeatable: state === 'open' && row.repeat_until_ms !== null && Number(row.repeat_until_ms) > nowMs,
  }
}
