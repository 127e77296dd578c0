/** The front door: one store, one scope rule, and the operations declared on them. */
import { checkOptions } from '../ports/check-options.ts'
import { type Clock, sleep, systemClock } from '../ports/clock.ts'
import { misconfigured } from '../ports/errors.ts'
import { values } from '../ports/linked-list.ts'
import type { Store } from '../ports/store.ts'
import { silentTelemetry, type Telemetry } from '../ports/telemetry.ts'
import { engine } from './internal.ts'
import { type NeverStored, readNeverStored } from './rules/stored-headers.ts'
import type { Answer, ExecuteRequest, Work } from './answer.ts'
import type { AtomicExecution, GuardedExecution } from './execution.ts'
import { unlessTooOld } from './run/age.ts'
import { executeAtomic, executeInTransaction } from './kinds/atomic.ts'
import { type Core, createCore } from './runtime.ts'
import { executeGuarded, needsTwoConnections } from './kinds/guarded.ts'
import { identify, type IdentityParts, type Scope } from './identity.ts'
import type {
  AtomicOperation,
  DeclaredOperation,
  DeferredOperation,
  DefinedOperation,
  GuardedOperation,
  HttpOptions,
  OperationKind,
  PhasedOperation,
  Resumer,
  Shared,
} from './operation.ts'
import type { Maintenance } from './maintenance.ts'
import { type Keeping, type Operators, operators } from './operator.ts'
import { atomicRunChecks, guardedChecks, latchkeyChecks, operationChecks } from './option-checks.ts'
import { adoptingAppender, appender } from './outbox.ts'
import type { OutboxMessage } from './outbox-message.ts'
import type { Definition, PhasedParts } from './kinds/phased.ts'
import {
  deferredOperation,
  type DeferredOptions,
  phasedOperation,
  type PhasedOptions,
} from './kinds/phased-operation.ts'
import { attemptFunction, executeRequest, valueOf } from './run-function.ts'
import { type GuardedOptions, type OperationOptions, settingsOf } from './options.ts'
import { type Statuses, statuses } from './status.ts'
import { tracked, unlessUnfit, untilIdle, withWaiting } from './run/admit.ts'

export interface LatchkeyOptions<Tx, Context> {
  readonly store: Store<Tx>
  /**
   * Who asks, from the authenticated caller: `c => [c.get('account')]`, or `singleTenant`. Required: without it one tenant's
   * key would find another's answer. Empty or throwing refuses the request, and so does one over 1,024 bytes, with U+0000 or with half
   * of a surrogate pair.
   */
  readonly scope: (context: Context) => Scope | Promise<Scope>
  readonly http?: HttpOptions
  readonly telemetry?: Telemetry
  /**
   * How long the store may take to answer a call. Default 2 s: beyond that a caller is better answered 503. A wait in the process's own queue is
   * not counted; the store bounds it.
   */
  readonly storeTimeoutMs?: number
  /**
   * Sweeps dead leases and reaps expired rows, once a minute and at most 100 of each, so that the table does not grow for ever where nobody
   * runs `createWorkers`. It is off by itself where they run. Default true. False: you run them elsewhere, or want no statement
   * that no request asked for.
   */
  readonly maintenance?: boolean
  /** Time and randomness. Default: the system's. Replace it in tests. */
  readonly clock?: Clock
}

export interface Latchkey<Tx, Context> extends Operators {
  /** Key, business rows and answer commit together in the store's database. For handlers that touch nothing else. */
  atomic(name: string, options?: OperationOptions<Context>): AtomicOperation<Tx, Context>
  /** Any handler: claimed, kept alive, completed. `onFailure` says what a failure half-way means. */
  guarded(name: string, options: GuardedOptions<Context>): GuardedOperation<Context>
  /**
   * Work of several steps, some of them outside this database: recorded, resumed after a crash, never repeated in doubt. Declared by name
   * with its definition, because a worker resumes it.
   */
  phased<Input>(
    name: string,
    options: PhasedOptions<Context>,
    definition: Definition<Tx, Input>,
  ): PhasedOperation<Input, Context>
  /**
   * Phased work that a worker begins: the request is answered 202 as soon as it is kept, and `statusOf(latchkey)` of the adapter tells how
   * far it is and how it ended. Needs `createWorkers(latchkey)` somewhere.
   */
  deferred<Input>(
    name: string,
    options: DeferredOptions<Context>,
    definition: Definition<Tx, Input>,
  ): DeferredOperation<Input, Context>
  readonly outbox: {
    /** In any transaction of the store's database, yours too: the message exists exactly when it has committed. */
    append(tx: unknown, message: OutboxMessage): Promise<void>
  }
  readonly [engine]: LatchkeyEngine<Tx, Context>
  /** The id of a row, as it appears in listings and logs. */
  identify(parts: IdentityParts): string
  /**
   * Waits for what is under way, and for the store to take what it could not take in time (default 10 s for both), then ends heartbeats.
   * New requests are refused.
   */
  close(options?: { timeoutMs?: number }): Promise<Closed>
}

export interface Closed {
  /** False: something is still running. */
  readonly drained: boolean
  /** How many ends of work the store did not take, and are lost with this process: their rows go by their recovery. */
  readonly unstored: number
}

export interface LatchkeyEngine<Tx, Context> extends Internals<Tx> {
  /** For the `statusOf` of the adapters. */
  readonly statuses: Statuses<Context>
}

/** What background work needs of a Latchkey. */
export interface Internals<Tx> {
  readonly store: Store<Tx>
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** The newest declared version of each phased or deferred operation, by name; it resumes rows of the older ones, too. */
  readonly phased: ReadonlyMap<string, { readonly [engine]: Resumer }>
  /** By name, whatever is declared here. */
  readonly kinds: ReadonlyMap<string, OperationKind>
  /** How an operation keeps its outcomes; of one that is not declared here, the defaults. */
  keeping(operation: string): Keeping
  /** What workers do, and who else does it. */
  readonly maintenance: Maintenance
  /** Aborted when `close` is called. */
  readonly closing: AbortSignal
}

export function createLatchkey<Tx, Context = unknown>(options: LatchkeyOptions<Tx, Context>): Latchkey<Tx, Context> {
  checkLatchkeyOptions(options)
  const { store, clock = systemClock, telemetry = silentTelemetry, storeTimeoutMs = 2_000 } = options
  const core = createCore({ store, clock, telemetry, storeTimeoutMs, maintenance: options.maintenance ?? true })
  const shared = sharedOf(core, options)
  const kinds = new Map<string, OperationKind>()
  const definitions = new Map<string, Map<number, Definition<Tx, never>>>()
  const phased = new Map<string, DefinedOperation<never, Context>>()
  const append = appender(store, clock)
  const declaredKeeping = new Map<string, Keeping>()
  const keeping = (operation: string) => declaredKeeping.get(operation) ?? settingsOf(operation, {})

  function declare(name: string, kind: OperationKind): void {
    checkName(name)
    const before = kinds.get(name)
    if (before !== undefined && before !== kind) {
      throw misconfigured(
        `${name} is declared as ${before} and as ${kind}: an operation has one kind, because its recovery follows from it`,
      )
    }
    kinds.set(name, kind)
  }

  function definedParts(name: string) {
    const versions = definitions.get(name) ?? new Map<number, Definition<Tx, never>>()
    definitions.set(name, versions)
    return { name, parts: { ...phasedParts(store, name), append }, definitions: versions }
  }

  function rememberKeeping<O extends DeclaredOperation<Context>>(operation: O): O {
    declaredKeeping.set(operation.name, operation[engine].settings)
    return operation
  }

  function remember<O extends DefinedOperation<never, Context>>(operation: O): O {
    const { name, version } = rememberKeeping(operation)
    if (version >= (phased.get(name)?.version ?? 0)) phased.set(name, operation)
    return operation
  }

  return {
    ...operators(core, keeping),
    atomic(name, given = {}) {
      declare(name, 'atomic')
      return rememberKeeping(atomicOperation(core, shared, { name, options: given }))
    },
    guarded(name, given) {
      declare(name, 'guarded')
      return rememberKeeping(guardedOperation(core, shared, { name, options: given }))
    },
    phased(name, given, definition) {
      declare(name, 'phased')
      const operation = phasedOperation(core, shared, { ...definedParts(name), options: given, definition })
      // Only `resume` is called through this, and it takes no input.
      remember(operation as PhasedOperation<never, Context>)
      return operation
    },
    deferred(name, given, definition) {
      declare(name, 'deferred')
      const operation = deferredOperation(core, shared, { ...definedParts(name), options: given, definition })
      remember(operation as DeferredOperation<never, Context>)
      return operation
    },
    outbox: { append: adoptingAppender(store, append) },
    [engine]: { ...internalsOf(core), phased, kinds, keeping, statuses: statuses(core, shared, phased) },
    identify: parts => identify(parts).id,
    close: ({ timeoutMs = 10_000 } = {}) => close(core, timeoutMs),
  }
}

function sharedOf<Tx, C>(core: Core<Tx>, { scope, http = {} }: LatchkeyOptions<Tx, C>): Shared<C> {
  const { clock, telemetry } = core
  return { scope, http, neverStored: neverStoredOf(http), clock, telemetry, expiryOf: id => expiryOf(core, id) }
}

function internalsOf<Tx>(core: Core<Tx>): Omit<Internals<Tx>, 'phased' | 'kinds' | 'keeping'> {
  const { store, clock, telemetry, maintenance, draining } = core
  return { store, clock, telemetry, maintenance, closing: draining.signal }
}

function neverStoredOf({ neverStore }: HttpOptions): NeverStored | undefined {
  if (neverStore === undefined) return undefined
  const names = readNeverStored(neverStore)
  if (names !== undefined) return names
  throw misconfigured(
    `http.neverStore must be a list of header names such as ['X-Ticket'] (got ${JSON.stringify(neverStore)})`,
  )
}

function checkLatchkeyOptions<Tx, C>(options: LatchkeyOptions<Tx, C>): void {
  checkOptions('createLatchkey', options, latchkeyChecks)
  const { store, scope } = options
  if (typeof store?.claim !== 'function')
    throw misconfigured('createLatchkey needs a store, such as postgresStore({ pool })')
  if (typeof scope !== 'function')
    throw misconfigured('createLatchkey needs a scope: a function of the request, or singleTenant')
}

function atomicOperation<Tx, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  { name, options }: Declared<OperationOptions<C>>,
): AtomicOperation<Tx, C> {
  const { transactor } = core.store
  if (transactor === undefined) {
    throw misconfigured(
      `${name}: the ${core.store.name} store has no transactions, so nothing can commit with your rows. Use guarded, or a transactional store`,
    )
  }
  const settings = { ...settingsOf(name, options, operationChecks), neverStored: shared.neverStored }
  if (settings.onMissingKey === 'run-unprotected') {
    throw misconfigured(
      `${name}: an atomic operation needs a key, because its rows commit with it. Leave onMissingKey at 'refuse'`,
    )
  }
  const execute = async (request: ExecuteRequest, work: Work<AtomicExecution<Tx>>): Promise<Answer> => {
    const { id } = request.identity
    const once = (counted: typeof work, by: typeof request) =>
      unlessTooOld(core, settings, {
        request: by,
        next: asked => executeAtomic(core, settings, { transactor, request: asked, work: counted }),
      })
    const answer = await tracked(core, withWaiting(core, settings, { request, work, once }))
    core.waiters.wake(id)
    return answer
  }
  return {
    kind: 'atomic',
    name,
    [engine]: { settings, shared, execute },
    async run(given, handler) {
      const request = executeRequest({ name, settings, clock: core.clock }, given, atomicRunChecks)
      const work = (x: Parameters<typeof handler>[0]) => attemptFunction(handler, x)
      const answer =
        given.tx === undefined
          ? await execute(request, work)
          : await unlessUnfit(core, () =>
              unlessTooOld(core, settings, {
                request,
                next: asked => executeInTransaction(core, settings, { transactor, request: asked, work, tx: given.tx }),
              }),
            )
      // The store keeps what valueOf decodes: JSON of the handler's own T.
      return valueOf(name, answer) as Awaited<ReturnType<typeof handler>>
    },
  }
}

interface Declared<O> {
  readonly name: string
  readonly options: O
}

function guardedOperation<Tx, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  { name, options }: Declared<GuardedOptions<C>>,
): GuardedOperation<C> {
  if (options?.onFailure === undefined) {
    throw misconfigured(
      `${name}: guarded needs onFailure: 'hold', 'rerun' or 'store'. Only you know what a failure half-way means`,
    )
  }
  needsTwoConnections(core.store.traits.connections, name)
  const settings = { ...settingsOf(name, options, guardedChecks), neverStored: shared.neverStored }
  const execute = (request: ExecuteRequest, work: Work<GuardedExecution>): Promise<Answer> => {
    const once = (counted: typeof work, by: typeof request) =>
      unlessTooOld(core, settings, {
        request: by,
        next: asked => executeGuarded(core, settings, { request: asked, work: counted }),
      })
    return tracked(core, withWaiting(core, settings, { request, work, once }))
  }
  return {
    kind: 'guarded',
    name,
    [engine]: { settings, shared, execute },
    async run(given, handler) {
      const request = executeRequest({ name, settings, clock: core.clock }, given)
      const answer = await execute(request, x => attemptFunction(handler, x))
      // The store keeps what valueOf decodes: JSON of the handler's own T.
      return valueOf(name, answer) as Awaited<ReturnType<typeof handler>>
    },
  }
}

function phasedParts<Tx>({ transactor, steps, name: store }: Store<Tx>, name: string): Omit<PhasedParts<Tx>, 'append'> {
  if (transactor !== undefined && steps !== undefined) return { transactor, steps }
  throw misconfigured(
    `${name}: the ${store} store has no transactions, so no step could be remembered with its writes. Use a transactional store`,
  )
}

function checkName(name: string): void {
  if (typeof name === 'string' && /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/.test(name)) return
  throw misconfigured(
    `an operation needs a stable name of letters, digits, '.', '_', ':' or '-', such as payments.create; got ${JSON.stringify(name)}`,
  )
}

/** Read, and not computed: the store wrote it by its own clock, and moved it if the work took long. */
async function expiryOf<Tx>({ calls, store }: Core<Tx>, id: string): Promise<number | undefined> {
  const record = await calls.call('read', () => store.read(id)).catch(() => undefined)
  return record?.state === 'completed' ? record.expiresAtMs : undefined
}

async function close<Tx>(core: Core<Tx>, timeoutMs: number): Promise<Closed> {
  core.draining.abort()
  core.maintenance.stop()
  const late = sleep(core.clock, timeoutMs, core.closing.signal).then(() => false)
  const drained = await Promise.race([untilIdle(core).then(() => true), late])
  await Promise.race([Promise.all([core.unstored.flush(), core.uncertain.flush()]), late])
  // Also ends the sleep above, which would keep the process alive for the rest of its time.
  core.closing.abort()
  for (const { stop } of values(core.heartbeats)) stop()
  core.waiters.wakeAll()
  const unstored = core.unstored.lose()
  if (unstored > 0) core.telemetry.report(`closed with ${unstored} ends of work that the store did not take`, {})
  const uncertain = core.uncertain.size()
  if (uncertain > 0) core.telemetry.report(`closed with ${uncertain} claims that may have been granted`, {})
  return { drained, unstored }
}
