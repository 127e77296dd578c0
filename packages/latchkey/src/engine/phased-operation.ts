/** Declaring an operation with its definition, and the three ways into it: a request, a plain call, a worker. */
import { misconfigured } from '../ports/errors.ts'
import type { Resumable } from '../ports/store.ts'
import { unlessTooOld } from './age.ts'
import { type Answer, type Attempt, type ExecuteRequest, refused } from './answer.ts'
import type { Core } from './core.ts'
import { deadlineOutcome, executeDeferred } from './deferred.ts'
import { inputText } from './input-text.ts'
import type {
  DeferredOperation,
  DeferredValue,
  PhasedOperation,
  PhasedRunRequest,
  PhasedValue,
  Resumed,
  Shared,
} from './operation.ts'
import { type Definition, executePhased, type PhasedParts } from './phased.ts'
import { executeRequest, outcomeOf } from './plain-function.ts'
import { type OperationOptions, type Settings, settingsOf } from './settings.ts'
import { tracked, withWaiting } from './waiting.ts'

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
  'version' | 'respondAsync' | 'whenInProgress' | 'waitMs'
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
  const { respondAsync, version } = options
  if (respondAsync !== undefined) checkDeadline(name, 'respondAsync.deadlineMs', respondAsync.deadlineMs)
  const ways = waysInto(core, shared, { ...declared, kind: 'phased', deadlineMs: respondAsync?.deadlineMs ?? 0 })
  return {
    kind: 'phased',
    name,
    version,
    settings: ways.settings,
    shared,
    async executeInput(request, input, asked) {
      const way = asked?.respondAsync === true && respondAsync !== undefined ? ways.defer : ways.execute
      return way(request, input)
    },
    run: async given => phasedValue(name, await ways.execute(ways.requestOf(given), given.input)),
    resume: ways.resume,
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
  const ways = waysInto(core, shared, { ...declared, options: { ...options, version }, kind: 'deferred', deadlineMs })
  return {
    kind: 'deferred',
    name,
    version,
    settings: ways.settings,
    shared,
    executeInput: (request, input) => ways.defer(request, input),
    async run(given) {
      const request = ways.requestOf(given)
      const answer = await ways.defer(request, given.input)
      return deferredValue(name, request.identity.id, answer)
    },
    resume: ways.resume,
  }
}

interface Ways<C> {
  readonly settings: Settings<C>
  requestOf(given: PhasedRunRequest<unknown>): ExecuteRequest
  execute(request: ExecuteRequest, input: unknown): Promise<Answer>
  defer(request: ExecuteRequest, input: unknown): Promise<Answer>
  resume(row: Resumable): Promise<Resumed>
}

interface DeclaredAs<Tx, Input, C> extends Declared<Tx, Input, PhasedOptions<C>> {
  readonly kind: 'phased' | 'deferred'
  /** 0: it is never deferred. */
  readonly deadlineMs: number
}

function waysInto<Tx, Input, C>(core: Core<Tx>, shared: Shared<C>, declared: DeclaredAs<Tx, Input, C>): Ways<C> {
  const { name, parts, definitions, definition, deadlineMs } = declared
  const { version } = declared.options
  const settings = checked(declared)
  // Stored and given back as the Input it was declared with.
  definitions.set(version, definition as unknown as Definition<Tx, never>)
  const overdue = deadlineOutcome(shared.http)
  const each = { parts, version, definitions, deadlineMs, overdue }
  return {
    settings,
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
      const waitless: Settings<C> = { ...settings, whenInProgress: 'refuse' }
      const once = () => unlessTooOld(core, waitless, { request, next })
      return tracked(core, withWaiting(core, waitless, { request, work: never, once }))
    },
    async resume({ identity, fingerprint }) {
      // A worker knows no key: it is not stored, and the definition is not given one.
      const request = { identity, key: '', fingerprint, description: undefined }
      const waitless: Settings<C> = { ...settings, whenInProgress: 'refuse' }
      const start = (run: () => Promise<Attempt>) => run()
      return resumed(await tracked(core, executePhased(core, waitless, { ...each, request, input: undefined, start })))
    },
  }
}

function checked<Tx, Input, C>({ kind, name, options, definition }: DeclaredAs<Tx, Input, C>): Settings<C> {
  const { version } = options
  if (!Number.isInteger(version) || version < 1)
    throw misconfigured(`${name}: version must be 1, 2, 3 … and is ${version}`)
  if (typeof definition !== 'function')
    throw misconfigured(`${name}: a ${kind} operation needs its definition as third argument`)
  const settings = settingsOf(name, options)
  if (settings.missingKey === 'run-unprotected') {
    throw misconfigured(
      `${name}: a ${kind} operation needs a key, because its steps are kept under it. Leave missingKey at 'refuse'`,
    )
  }
  return settings
}

/** A year: work that nobody has begun by then is nobody's. */
const deadlineMsMax = 366 * 24 * 3_600_000

function checkDeadline(name: string, option: string, deadlineMs: number): void {
  if (deadlineMs > 0 && deadlineMs <= deadlineMsMax) return
  throw misconfigured(
    `${name}: ${option} must be between 1 ms and a year, and is ${deadlineMs}: how long may it wait for a worker?`,
  )
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
  return code === 'store-unavailable' ? 'failed' : 'not-mine'
}
