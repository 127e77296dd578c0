/** What a phased definition is given, and the state of one run of it. */
import type { Claim } from '../../ports/store.ts'
import type { Journal, Step, Steps } from '../../ports/steps.ts'
import type { Transactor } from '../../ports/store.ts'
import type { Core } from '../runtime.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { NetworkFailure } from '../rules/network-failure.ts'
import type { OutboxMessage } from '../outbox-message.ts'
import { Halt, type HaltReason } from './halt.ts'

export interface EffectOptions {
  /**
   * The provider recognises the downstream key for this long: an interrupted call is repeated within it. Absent: it does not,
   * and an interrupted call is `unknown`.
   */
  readonly dedup?: { readonly windowMs: number }
  /** Longest time the call may take; then `signal` aborts it and its outcome is unknown. The lease is made to cover it. */
  readonly timeoutMs: number
  /** Your own judgement of an error. Undefined: as `classifyNetworkFailure` says. */
  readonly classify?: (error: unknown) => NetworkFailure | undefined
}

export interface EffectCall {
  /** The row's. Put it into the provider's metadata: a webhook that brings it back finds the row, also without the key. */
  readonly id: string
  /** Send it as the provider's idempotency key: the same for every try of this effect, until evidence says it never happened. */
  readonly key: string
  readonly signal: AbortSignal
}

export interface PhasedExecution<Tx> {
  /** The row's: the same in every run, and the id of its status. */
  readonly id: string
  readonly scope: string
  readonly operation: string
  /** 1 for the first run, rising with every grant of the row. */
  readonly attempt: number
  readonly fence: number
  /** The last finished step when this run began; undefined: it began at the beginning. */
  readonly recoveryPoint: string | undefined
  /**
   * One transaction: what is written through `tx`, the remembered value and the recovery point commit together. On a resume
   * the value is returned and the function does not run. The value is JSON, at most 64 KiB.
   */
  phase<T>(name: string, work: (tx: Tx) => Promise<T> | T): Promise<T>
  /**
   * Something outside the database. Its intent is committed before the call, its value after it. The function throws when the
   * call failed; a refusal that is an answer (a declined card) is a value. Its name is part of its key: in a loop, put the item
   * into it.
   */
  effect<T>(name: string, options: EffectOptions, call: (effect: EffectCall) => Promise<T>): Promise<T>
  readonly outbox: {
    /** In a phase: the message exists exactly when the phase has committed. */
    append(tx: Tx, message: OutboxMessage): Promise<void>
  }
}

/** One run of a definition: the journal it resumes from, and how far it has come. */
export interface PhasedRun<Tx> {
  readonly core: Core<Tx>
  readonly transactor: Transactor<Tx>
  readonly steps: Steps<Tx>
  readonly claim: Claim
  readonly operation: string
  readonly leaseMs: number
  /** For a result that could not be recorded in time. */
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

/** The next step of the run, and what the journal remembers of it. Everything goes through here, so nothing follows a halt. */
export function nextStep<Tx>(
  run: PhasedRun<Tx>,
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

function checkStep<Tx>({ operation, running }: PhasedRun<Tx>, name: string): void {
  if (running !== undefined) {
    throw misconfigured(
      `${operation}: ${name} was begun while ${running} runs. Steps run one after another: await each`,
    )
  }
  if (typeof name === 'string' && /^[\x20-\x7e]{1,100}$/.test(name)) return
  throw misconfigured(
    `${operation}: a step needs a stable name of 1 to 100 printable characters; got ${JSON.stringify(name)}`,
  )
}

/** Runs the body of a step; nothing else of the definition may begin a step meanwhile. */
export async function whileRunning<Tx, T>(run: PhasedRun<Tx>, name: string, body: () => Promise<T>): Promise<T> {
  run.running = name
  try {
    return await body()
  } finally {
    run.running = undefined
  }
}

export function halt<Tx>(run: PhasedRun<Tx>, reason: HaltReason): never {
  run.halted ??= new Halt(reason)
  throw run.halted
}
