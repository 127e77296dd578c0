/** Declaring an operation with its definition, and the three ways into it: a request, a plain call, a worker. */
import type { Checks } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { Resumable } from '../../ports/store.ts'
import { engine } from '../internal.ts'
import { unlessTooOld } from '../run/age.ts'
import { type Answer, type Attempt, type ExecuteRequest, refused } from '../answer.ts'
import type { Core } from '../runtime.ts'
import { deadlineOutcome, executeDeferred } from './deferred.ts'
import { inputText } from '../steps/input-text.ts'
import { deferredChecks, phasedChecks } from '../option-checks.ts'
import type {
  DeferredOperation,
  DeferredValue,
  PhasedOperation,
  PhasedRunRequest,
  PhasedValue,
  Resumed,
  Shared,
} from '../operation.ts'
import { type Definition, executePhased, type PhasedParts } from './phased.ts'
import { executeRequest, outcomeOf } from '../run-function.ts'
import { type OperationOptions, type Settings, settingsOf } from '../options.ts'
import { tracked, withWaiting } from '../run/admit.ts'

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

/** As of phased work, without what makes a client wait. */
export interface DeferredOptions<Context = unknown> extends Omit<
  PhasedOptions<Context>,
  'version' | 'respondAsync' | 'onInProgress' | 'waitMs'
> {
  /** As of phased work. Default 1. */
  readonly version?: number
  /** A worker must have begun it within this; otherwise it ends in a stored 408. Longer than any outage you want to survive. */
  readonly deadlineMs: number
}

export interface Declared<Tx, Input, O> {
  readonly name: string
  readonly options: O
  readonly parts: PhasedParts<Tx>
  /** Shared by all versions of this name in this process. */
  readonly definitions: Map<number, Definition<Tx, never>>
  readonly definition: Definition<Tx, Input>
}

export function phasedOperation<Tx, Input, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  declared: Declared<Tx, Input, PhasedOptions<C>>,
): PhasedOperation<Input, C> {
  const { name, options } = declared
  const settings = { ...checked({ ...declared, kind: 'phased' }, phasedChecks), neverStored: shared.neverStored }
  const { respondAsync, version } = options
  if (respondAsync !== undefined) checkDeadline(name, 'respondAsync.deadlineMs', respondAsync.deadlineMs)
  const ways = waysInto(core, shared, { ...declared, settings, deadlineMs: respondAsync?.deadlineMs ?? 0 })
  return {
    kind: 'phased',
    name,
    version,
    [engine]: {
      settings,
      shared,
      async executeInput(request, input, asked) {
        const way = asked?.respondAsync === true && respondAsync !== undefined ? ways.defer : ways.execute
        return way(request, input)
      },
      resume: ways.resume,
    },
    run: async given => phasedValue(name, await ways.execute(ways.requestOf(given), given.input)),
  }
}

export function deferredOperation<Tx, Input, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  declared: Declared<Tx, Input, DeferredOptions<C>>,
): DeferredOperation<Input, C> {
  const { name, options } = declared
  const { version = 1, deadlineMs } = options ?? {}
  checkDeadline(name, 'deadlineMs', deadlineMs)
  const versioned = { ...declared, options: { ...options, version } }
  const settings = { ...checked({ ...versioned, kind: 'deferred' }, deferredChecks), neverStored: shared.neverStored }
  const ways = waysInto(core, shared, { ...versioned, settings, deadlineMs })
  return {
    kind: 'deferred',
    name,
    version,
    [engine]: { settings, shared, executeInput: (request, input) => ways.defer(request, input), resume: ways.resume },
    async run(given) {
      const request = ways.requestOf(given)
      const answer = await ways.defer(request, given.input)
      return deferredValue(name, request.identity.id, answer)
    },
  }
}

interface Ways {
  requestOf(given: PhasedRunRequest<unknown>): ExecuteRequest
  execute(request: ExecuteRequest, input: unknown): Promise<Answer>
  defer(request: ExecuteRequest, input: unknown): Promise<Answer>
  resume(row: Resumable): Promise<Resumed>
}

interface Checkable<Tx, Input, C> extends Declared<Tx, Input, PhasedOptions<C>> {
  readonly kind: 'phased' | 'deferred'
}

interface Checked<Tx, Input, C> extends Declared<Tx, Input, PhasedOptions<C>> {
  readonly settings: Settings<C>
  /** 0: it is never deferred. */
  readonly deadlineMs: number
}

function waysInto<Tx, Input, C>(core: Core<Tx>, shared: Shared<C>, declared: Checked<Tx, Input, C>): Ways {
  const { name, parts, definitions, definition, deadlineMs, settings } = declared
  const { version } = declared.options
  // Stored and given back as the Input it was declared with.
  definitions.set(version, definition as unknown as Definition<Tx, never>)
  const overdue = deadlineOutcome(shared.http)
  const each = { parts, version, definitions, deadlineMs, overdue }
  return {
    requestOf: given => executeRequest({ name, settings, clock: core.clock }, given),
    async execute(request, given) {
      const stored = inputText(name, given)
      if (stored.kind === 'too-large') return refused('input-too-large', { limit: stored.limit })
      const input = stored.text
      const work = (run: () => Promise<Attempt>) => run()
      const once = (start: typeof work, by: ExecuteRequest) =>
        unlessTooOld(core, settings, {
          request: by,
          next: asked => executePhased(core, settings, { ...each, request: asked, input, start }),
        })
      return tracked(core, withWaiting(core, settings, { request, work, once }))
    },
    async defer(request, given) {
      const stored = inputText(name, given)
      if (stored.kind === 'too-large') return refused('input-too-large', { limit: stored.limit })
      const input = stored.text
      const next = (asked: ExecuteRequest) =>
        executeDeferred(core, settings, { request: asked, work: { version, input, deadlineInMs: deadlineMs } })
      // Nothing runs here, so there is nothing to wait for.
      const waitless: Settings<C> = { ...settings, onInProgress: 'refuse' }
      const once = () => unlessTooOld(core, waitless, { request, next })
      return tracked(core, withWaiting(core, waitless, { request, work: never, once }))
    },
    async resume({ identity, fingerprint }) {
      // A worker knows no key: it is not stored, and the definition is not given one.
      const request = { identity, key: '', fingerprint, description: undefined }
      const waitless: Settings<C> = { ...settings, onInProgress: 'refuse' }
      const start = (run: () => Promise<Attempt>) => run()
      return resumed(await tracked(core, executePhased(core, waitless, { ...each, request, input: undefined, start })))
    },
  }
}

function checked<Tx, Input, C>(
  { kind, name, options, definition }: Checkable<Tx, Input, C>,
  checks: Checks,
): Settings<C> {
  const settings = settingsOf(name, options, checks)
  if (options.version === undefined)
    throw misconfigured(`${name}: a ${kind} operation needs version: 1, 2, 3 …, which rises with its steps`)
  if (typeof definition !== 'function')
    throw misconfigured(`${name}: a ${kind} operation needs its definition as third argument`)
  if (settings.onMissingKey === 'run-unprotected') {
    throw misconfigured(
      `${name}: a ${kind} operation needs a key, because its steps are kept under it. Leave onMissingKey at 'refuse'`,
    )
  }
  return settings
}

function checkDeadline(name: string, option: string, deadlineMs: number | undefined): void {
  if (deadlineMs === undefined) throw misconfigured(`${name}: needs ${option}: how long may it wait for a worker?`)
}

/** Deferred work is never run by the request that asks for it. */
function never(): Promise<Attempt> {
  return Promise.reject(new Error('deferred work was run by a request: this is a bug in Latchkey'))
}

function phasedValue(name: string, answer: Answer): PhasedValue {
  const { status, headers, body } = outcomeOf(name, answer)
  const text = new TextDecoder().decode(body)
  return { status, headers, value: text === '' ? undefined : JSON.parse(text) }
}

function deferredValue(name: string, id: string, answer: Answer): DeferredValue {
  if (answer.kind === 'accepted') return { kind: 'accepted', id }
  return { kind: 'done', id, ...phasedValue(name, answer) }
}

function resumed(answer: Answer): Resumed {
  if (answer.kind === 'executed') return answer.stored === 'yes' ? 'completed' : 'failed'
  if (answer.kind !== 'refused') return 'not-mine'
  const { code, ownAttempt } = answer.refusal
  if (code === 'parked') return 'parked'
  if (code === 'outcome-unknown' && ownAttempt) return 'unknown'
  return code === 'store-unavailable' || code === 'overloaded' ? 'failed' : 'not-mine'
}
