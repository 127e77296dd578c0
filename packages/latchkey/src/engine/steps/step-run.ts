/** One run of a definition: how far it has come, and why it stops before its end. */
import { misconfigured } from '../../ports/errors.ts'
import type { Journal, Step, Steps } from '../../ports/steps.ts'
import type { Claim } from '../../ports/store.ts'
import type { Core } from '../runtime.ts'

export interface StepRun<Tx> {
  readonly core: Core<Tx>
  readonly steps: Steps
  readonly claim: Claim
  readonly operation: string
  readonly leaseMs: number
  /** For a value that could not be recorded in time. */
  readonly holdMsMax: number
  /** For evidence of an outcome. */
  readonly retentionMs: number
  readonly journal: Journal
  position: number
  /** The step under way: there is one at a time, so that the journal has one order and a doubt one place. */
  running: string | undefined
  /** Positions of intents that are open: what happened there is not known. */
  readonly doubts: Set<number>
  /** Names of the effects so far. */
  readonly effects: Set<string>
  halted: Halt | undefined
}

/** The next step of the run, and its entry in the journal. Every step begins here, so that none follows a halt. */
export function nextStep<Tx>(
  run: StepRun<Tx>,
  kind: Step['kind'],
  name: string,
): { position: number; known: Step | undefined } {
  if (run.halted !== undefined) throw run.halted
  checkStep(run, name)
  const position = run.position++
  const known = run.journal.steps.find(step => step.position === position)
  if (known !== undefined && (known.name !== name || known.kind !== kind)) {
    halt(run, { kind: 'park', cause: 'definition-changed' })
  }
  return { position, known }
}

function checkStep<Tx>({ operation, running }: StepRun<Tx>, name: string): void {
  if (running !== undefined) {
    throw misconfigured(
      `${operation}: ${name} was begun while ${running} is running. Steps run one after another: await each`,
    )
  }
  if (typeof name === 'string' && /^[\x20-\x7e]{1,100}$/.test(name)) return
  throw misconfigured(
    `${operation}: a step needs a stable name of 1 to 100 printable characters; got ${JSON.stringify(name)}`,
  )
}

/** Runs the body of a step; nothing else of the definition may begin a step meanwhile. */
export async function whileRunning<Tx, T>(run: StepRun<Tx>, name: string, body: () => Promise<T>): Promise<T> {
  run.running = name
  try {
    return await body()
  } finally {
    run.running = undefined
  }
}

export function halt<Tx>(run: StepRun<Tx>, reason: HaltReason): never {
  run.halted ??= new Halt(reason)
  throw run.halted
}

/**
 * Why phased work stops before its end. Thrown through the definition to unwind it; a definition that catches it and continues
 * is stopped again at its next step, so that nothing happens after a doubt.
 */
export type HaltReason =
  /** Another owner has the row now. */
  | { readonly kind: 'claim-lost' }
  /** An effect may have happened. */
  | { readonly kind: 'unknown'; readonly errorCode: string; readonly cause: unknown }
  /** Proven: the step did not happen. A retry or a worker resumes from here. */
  | { readonly kind: 'retryable'; readonly errorCode: string; readonly cause: unknown }
  /** The store did not take a write whose effect is clear; the row's recovery decides when the lease ends. */
  | { readonly kind: 'abandon'; readonly cause: unknown }
  /** The definition no longer fits the recorded steps. */
  | { readonly kind: 'park'; readonly cause: string }

/** The error code of a step that did not happen because the store failed. */
export const storeUnavailable = 'store-unavailable'

export class Halt extends Error {
  override readonly name: string = 'Halt'
  readonly reason: HaltReason

  constructor(reason: HaltReason) {
    super(`phased work stops here: ${reason.kind}`, 'cause' in reason ? { cause: reason.cause } : undefined)
    this.reason = reason
  }
}
