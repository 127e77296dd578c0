/** Numbers for the words of the port: two bytes in a row that is read on every request. Never renumber: rows hold them. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { Step, StepState } from '../../ports/steps.ts'
import type { Recovery, RowState, State } from '../../ports/store.ts'

export const stateCodes: { readonly [S in State]: number } = {
  pending: 0,
  in_progress: 1,
  completed: 2,
  failed_retryable: 3,
  unknown: 4,
}

export const recoveryCodes: { readonly [R in Recovery]: number } = { hold: 0, rerun: 1, resume: 2 }

export const stepStateCodes: { readonly [S in StepState]: number } = { open: 0, again: 1, done: 2 }

export const stepKindCodes: { readonly [K in Step['kind']]: number } = { phase: 0, effect: 1 }

const states: readonly State[] = ['pending', 'in_progress', 'completed', 'failed_retryable', 'unknown']
const recoveries: readonly Recovery[] = ['hold', 'rerun', 'resume']
const stepStates: readonly StepState[] = ['open', 'again', 'done']
const stepKinds: readonly Step['kind'][] = ['phase', 'effect']

/** Of a row that this statement has written itself. */
export function stateOf(code: number): State {
  return states[code] ?? unknownCode('state', code)
}

export function rowStateOf(code: number): RowState {
  return states[code] ?? 'unreadable'
}

export function recoveryOf(code: number): Recovery | undefined {
  return recoveries[code]
}

export function stepStateOf(code: number): StepState {
  return stepStates[code] ?? unknownCode('state of a step', code)
}

export function stepKindOf(code: number): Step['kind'] {
  return stepKinds[code] ?? unknownCode('kind of a step', code)
}

function unknownCode(column: string, code: number): never {
  throw new LatchkeyError('invariant', whyUnknown(column, code))
}

/** For the operator. */
export function whyUnknown(column: string, code: unknown): string {
  return `column ${column} holds ${String(code)}, which this version does not know: a newer one may have written the row`
}
