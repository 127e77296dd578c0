/** Phased: several steps, recorded one by one, resumed after a crash. The definition is declared with the operation. */
import type { Checks } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { Steps } from '../../ports/steps.ts'
import type { Resumable, Store } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, refused, unavailable } from '../answer.ts'
import { engine } from '../internal.ts'
import type {
  InputSource,
  PhasedOperation,
  PhasedRunRequest,
  PhasedValue,
  Resumed,
  Resumer,
  Shared,
} from '../operation.ts'
import { phasedChecks } from '../option-checks.ts'
import { boundSettings, type OperationOptions, type Settings, settingsOf } from '../options.ts'
import type { Append } from '../outbox.ts'
import { executeRequest } from '../request.ts'
import { admit, type Once, tracked } from '../run/admit.ts'
import { claimThenRun } from '../run/claim.ts'
import { deadlineOutcome, enqueueOnce } from '../run/enqueue.ts'
import { lookOnly } from '../run/look.ts'
import { outcomeOf, runRequest } from '../run-function.ts'
import type { Core } from '../runtime.ts'
import { inputText } from '../steps/input-text.ts'
import { type DeclaredVersion, type Definition, endUndeclared, runGranted } from '../steps/run-definition.ts'
import type { PhaseParts } from '../steps/phase.ts'
import { phasesOf, stepsOf } from '../store/carry.ts'

export interface PhasedOptions<Context = unknown> extends OperationOptions<Context> {
  /** Rises whenever the steps or their meaning change. Rows of a version that is still declared drain with it; others are parked. */
  readonly version: number
  /** How long a step may be silent. Default 30 s; an effect with a longer `timeoutMs` gets a longer lease by itself. */
  readonly leaseMs?: number
  /**
   * HTTP: a request with `Prefer: respond-async` gets a 202 at once and is run by a worker, which must begin it within `deadlineMs`.
   * Default: the preference is not applied. Offer it where workers run and `statusOf(latchkey)` is mounted.
   */
  readonly respondAsync?: { readonly deadlineMs: number }
}

/** Which steps its definition may have, of a phased or deferred operation. */
export interface EffectsOnly {
  /**
   * Its definition has effects only, and neither `phase` nor `outbox`. Default: it has all of them. Needed on a store without transactions; a
   * definition that calls `phase` all the same is parked with what was recorded.
   */
  readonly steps: 'effects'
}

/** Its definition may have phases, and the outbox. */
export interface AllSteps {
  readonly steps?: never
}

/** What a phased or deferred operation is declared with. */
export interface DefinitionParts<Tx, Input, O> {
  readonly name: string
  readonly options: O
  readonly parts: PhasedParts<Tx>
  /** Shared by all versions of this name in this process. */
  readonly definitions: Map<number, DeclaredVersion<Tx>>
  readonly definition: Definition<Tx, Input>
}

export function phasedOperation<Tx, Input, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  given: DefinitionParts<Tx, Input, PhasedOptions<C>>,
): PhasedOperation<Input, C> {
  const { name, options } = given
  const settings = boundSettings(definedSettings('phased', given, phasedChecks), core, shared)
  const { respondAsync, version } = options
  if (respondAsync !== undefined && respondAsync.deadlineMs === undefined)
    throw misconfigured(`${name}: needs respondAsync.deadlineMs: how long may it wait for a worker?`)
  const runner = definitionRunner(core, shared, { ...given, settings, deadlineMs: respondAsync?.deadlineMs ?? 0 })
  return {
    kind: 'phased',
    name,
    version,
    [engine]: {
      name,
      settings,
      shared,
      deadlineMs: respondAsync?.deadlineMs,
      execute: (request, source) =>
        source.respondAsync === true && respondAsync !== undefined
          ? runner.defer(request, source)
          : runner.execute(request, source),
      look: lookOnly(core, settings),
      resume: runner.resume,
    },
    async run({ input, ...rest }) {
      const request = runner.requestOf({ input, ...rest })
      return phasedValue(name, await runner.execute(request, { input: () => input }))
    },
  }
}

/** What phased work needs of its store. */
export interface PhasedParts<Tx> {
  readonly steps: Steps
  /** Undefined: it is declared with `steps: 'effects'`. */
  readonly phases: PhaseParts<Tx> | undefined
}

export function phasedParts<Tx>(
  store: Store<Tx>,
  {
    name,
    append,
    steps,
  }: { readonly name: string; readonly append: Append<Tx>; readonly steps: 'effects' | undefined },
): PhasedParts<Tx> {
  return {
    steps: stepsOf(store, name),
    phases: steps === 'effects' ? undefined : { ...phasesOf(store, name), append },
  }
}

export function definedSettings<Tx, Input, C>(
  kind: 'phased' | 'deferred',
  { name, options, definition }: DefinitionParts<Tx, Input, PhasedOptions<C>>,
  checks: Checks,
): Settings<C> {
  const settings = settingsOf(name, options, checks)
  if (options.version === undefined)
    throw misconfigured(`${name}: a ${kind} operation needs version: 1, 2, 3 …, which rises with its steps`)
  if (typeof definition !== 'function')
    throw misconfigured(`${name}: a ${kind} operation needs its definition as third argument`)
  if (settings.onMissingKey === 'run-unprotected') {
    throw misconfigured(
      `${name}: a ${kind} operation needs a key, because its steps are stored under it. Leave onMissingKey at 'refuse'`,
    )
  }
  return settings
}

/** The ways to run a definition. */
export interface DefinitionRunner<Input> {
  requestOf(given: PhasedRunRequest<Input>): ExecuteRequest
  /** Now, for a caller that waits. */
  execute(request: ExecuteRequest, source: InputSource<Input>): Promise<Answer>
  /** Later, by a worker. */
  defer(request: ExecuteRequest, source: InputSource<Input>): Promise<Answer>
  /** By a worker, from its journal. */
  resume(row: Resumable): Promise<Resumed>
}

interface CheckedParts<Tx, Input, C> extends DefinitionParts<Tx, Input, PhasedOptions<C>> {
  readonly settings: Settings<C>
  /** 0: it is never deferred. */
  readonly deadlineMs: number
}

export function definitionRunner<Tx, Input, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  { name, options, parts, definitions, definition, deadlineMs, settings }: CheckedParts<Tx, Input, C>,
): DefinitionRunner<Input> {
  const { version } = options
  // The input is stored, and given back as the Input it was declared with.
  definitions.set(version, {
    definition: definition as unknown as Definition<Tx, never>,
    phases: parts.phases,
  })
  const plan = { steps: parts.steps, definitions, overdue: deadlineOutcome(shared.http) }
  const runOnce = claimThenRun<Tx, C, string | undefined>(core, settings, {
    recovery: 'resume',
    extraRetentionMs: deadlineMs,
    inputOf: input => (input === undefined ? undefined : { version, input }),
    run(won, { request, work, claimedAtMs, answer, threw }) {
      const granted = { won, request, work, claimedAtMs }
      runGranted(core, settings, { granted, plan }).then(answer, threw)
    },
    storeDown: async ({ cause, inDoubt }) => unavailable(cause, inDoubt),
  })
  const runAdmitted = admit(core, settings, runOnce)
  // Nothing runs here, so there is nothing to wait for.
  const waitless: Settings<C> = { ...settings, onInProgress: 'refuse' }
  const queueAdmitted = admit<Tx, C, string>(core, waitless, (request, input) =>
    enqueueOnce(core, settings, { request, work: { version, input, deadlineInMs: deadlineMs } }),
  )
  return {
    requestOf: given => runRequest({ name, settings, clock: core.clock }, given),
    execute: (request, source) => withInput(name, source, text => runAdmitted(request, text)),
    defer: (request, source) => withInput(name, source, text => queueAdmitted(request, text)),
    resume: resumeWith(core, settings, runOnce),
  }
}

function resumeWith<Tx, C>(core: Core<Tx>, settings: Settings<C>, runOnce: Once<undefined>): Resumer['resume'] {
  return async ({ identity, fingerprint }) => {
    // A worker does not know the key: it is not stored, and the definition is not given one.
    const request = executeRequest(settings, { identity, key: '', fingerprint })
    return resumedAs(await tracked(core, runOnce(request, undefined)))
  }
}

/** For rows of operations that are not declared here: ends the ones that were not begun before their deadline. */
export function overdueResumer<Tx, C>(core: Core<Tx>, shared: Shared<C>): Resumer {
  const settings: Settings<C> = settingsOf('an operation that is not declared', {})
  const overdue = deadlineOutcome(shared.http)
  const runOnce = claimThenRun<Tx, C, undefined>(core, settings, {
    recovery: 'resume',
    run(won, { request, work, claimedAtMs, answer, threw }) {
      const granted = { won, request, work, claimedAtMs }
      endUndeclared(core, settings, { granted, overdue }).then(answer, threw)
    },
    storeDown: async ({ cause, inDoubt }) => unavailable(cause, inDoubt),
  })
  return { resume: resumeWith(core, settings, runOnce) }
}

async function withInput(
  name: string,
  { input }: InputSource<unknown>,
  run: (text: string) => Promise<Answer>,
): Promise<Answer> {
  const stored = inputText(name, await input())
  return stored.kind === 'too-large' ? refused('input-too-large', { limit: stored.limit }) : run(stored.text)
}

export function phasedValue(name: string, answer: Answer): PhasedValue {
  const { status, headers, body } = outcomeOf(name, answer)
  const text = new TextDecoder().decode(body)
  return { status, headers, value: text === '' ? undefined : JSON.parse(text) }
}

function resumedAs(answer: Answer): Resumed {
  if (answer.kind === 'executed') return answer.stored === 'yes' ? 'completed' : 'failed'
  if (answer.kind !== 'refused') return 'not-mine'
  const { code, ownAttempt } = answer.refusal
  if (code === 'parked') return 'parked'
  if (code === 'outcome-unknown' && ownAttempt) return 'unknown'
  return code === 'store-unavailable' || code === 'overloaded' ? 'failed' : 'not-mine'
}
