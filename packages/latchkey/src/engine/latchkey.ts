/** `createLatchkey`: one store, one scope rule, and the operations declared on them. */
import { checkOptions } from '../ports/check-options.ts'
import { type Clock, systemClock } from '../ports/clock.ts'
import { consoleTelemetry } from '../ports/console-telemetry.ts'
import { misconfigured } from '../ports/errors.ts'
import type { OperationKind, Store, StoreWithoutTransactions } from '../ports/store.ts'
import { harmless, type Telemetry } from '../ports/telemetry.ts'
import { auditReader, type ReadAuditRecords } from './audit/read.ts'
import { type AuditOptions, recordingStore, type Trail, trailOf } from './audit/trail.ts'
import { identify, type IdentityParts, type Scope } from './request.ts'
import { checkCarried, type Declaration } from './store/carry.ts'
import { type Erase, eraser } from './store/erase.ts'
import { type InboxHost, inboxHost } from './store/inbox.ts'
import { engine } from './internal.ts'
import { atomicOperation } from './kinds/atomic.ts'
import { deferredOperation, type DeferredOptions } from './kinds/deferred.ts'
import { guardedOperation } from './kinds/guarded.ts'
import { overdueResumer, phasedOperation, phasedParts } from './kinds/phased.ts'
import type { AllSteps, EffectsOnly, PhasedOptions } from './kinds/phased.ts'
import type { LimitOptions } from './limits/limits.ts'
import type { Maintenance } from './maintenance.ts'
import type {
  AtomicOperation,
  DeclaredOperation,
  DeferredOperation,
  DefinedOperation,
  GuardedOperation,
  HttpOptions,
  PhasedOperation,
  Resumer,
  Shared,
} from './operation.ts'
import { type Operators, operators, type Retention } from './operator.ts'
import { latchkeyChecks } from './option-checks.ts'
import { type GuardedOptions, type OperationOptions, type Settings, settingsOf } from './options.ts'
import { adoptingAppender, appender, type OutboxMessage } from './outbox.ts'
import { type NeverStored, readNeverStored } from './rules/judge.ts'
import { countRates } from './store/rates.ts'
import { close, type Closed, type Core, createCore, type TrailMaker } from './runtime.ts'
import { createKeyring, type EncryptionOptions, type Keyring } from './sealed/keyring.ts'
import { type Rewrap, rewrapOf } from './sealed/rewrap.ts'
import { sealedStore } from './sealed/store.ts'
import { type Statuses, statuses } from './status.ts'
import type { DeclaredVersion, Definition, EffectsDefinition } from './steps/run-definition.ts'

export interface LatchkeyOptions<Tx, Context> {
  readonly store: Store<Tx>
  /**
   * The tenant, from the authenticated caller: `c => [c.get('account')]`, or `singleTenant`. Required: without it one tenant's
   * key would find another's answer. A scope that is empty, throws, is over 1,024 bytes, or holds U+0000 or half of a surrogate pair refuses
   * the request.
   */
  readonly scope: (context: Context) => Scope | Promise<Scope>
  readonly http?: HttpOptions<Context>
  /**
   * Counters, durations and reports. Default: reports go to `console.warn`, each cause once a minute, and nothing is counted.
   * `silentTelemetry` turns that off; `{ ...consoleTelemetry(), count }` keeps it and counts.
   */
  readonly telemetry?: Telemetry
  /**
   * How long the store may take to answer a call. Default 2 s: beyond that a caller is better answered 503. A wait in the process's own queue is
   * not counted; the store bounds it.
   */
  readonly storeTimeoutMs?: number
  /**
   * Sweeps dead leases and reaps expired rows, once a minute and at most 100 of each, so that the table does not grow for ever without
   * `createWorkers`. It turns itself off where workers run. Default true. False: workers run elsewhere, or you want no statement
   * outside of requests.
   */
  readonly maintenance?: boolean
  /** What a scope may do, over all operations: new keys, look-ups, open keys, stored bytes. Default: not limited. */
  readonly limits?: LimitOptions
  /**
   * Encrypts what the application puts into the store: answers, inputs, step values, descriptions, evidence, messages. Default: off. See the guide
   * "Encryption" for the keys and their rotation.
   */
  readonly encryption?: EncryptionOptions
  /**
   * A trail that outlives the rows: a line for every execution that ended, committed with its end, with who, when, what and how, and never a key or a
   * body. Default: off, and nothing is paid for it. See the guide "Audit trail".
   */
  readonly audit?: AuditOptions
  /** Time and randomness. Default: the system's. Replace it in tests. */
  readonly clock?: Clock
}

/** On a store without transactions: no atomic operations, no phases and no outbox. */
export interface LatchkeyWithoutTransactions<Context> extends Operators {
  /** Any handler: claimed, its lease renewed, completed. `onFailure` says what a failure half-way means. */
  guarded(name: string, options: GuardedOptions<Context>): GuardedOperation<Context>
  /** As on a store with transactions, of effects only. */
  phased<Input>(
    name: string,
    options: PhasedOptions<Context> & EffectsOnly,
    definition: EffectsDefinition<Input>,
  ): PhasedOperation<Input, Context>
  /** As on a store with transactions, of effects only. */
  deferred<Input>(
    name: string,
    options: DeferredOptions<Context> & EffectsOnly,
    definition: EffectsDefinition<Input>,
  ): DeferredOperation<Input, Context>
  readonly [engine]: LatchkeyEngine<unknown, Context>
  /**
   * Encrypts everything that is stored under another key than `encryption.current`, or not at all, again under the current one, in batches and
   * beside requests. When it resolves, and every process writes under the current key, the old keys can be thrown away.
   */
  readonly rewrap: Rewrap
  /**
   * Deletes what is stored of a tenant, in batches: completed rows and those that may be retried, with their answers, inputs, steps and evidence; messages
   * that were delivered; and what operators wrote in the audit. Stop the tenant's requests first. What is still open is reported, and goes when
   * it has ended: workers and `maintenance` continue.
   */
  readonly erase: Erase
  /** The trail, by time. It is there also after its rows are gone, and where this Latchkey itself records nothing. */
  readonly auditRecords: ReadAuditRecords
  /** The id of a row, as it appears in listings and logs. */
  identify(parts: IdentityParts): string
  /**
   * Waits for what is under way, and for the store to take outcomes that it did not take in time (default 10 s for both), then ends
   * heartbeats. New requests are refused.
   */
  close(options?: { timeoutMs?: number }): Promise<Closed>
}

export interface Latchkey<Tx, Context> extends LatchkeyWithoutTransactions<Context> {
  /** Key, business rows and answer commit together in the store's database. For handlers that touch nothing else. */
  atomic(name: string, options?: OperationOptions<Context>): AtomicOperation<Tx, Context>
  /**
   * Work of several steps, some of them outside this database: recorded, resumed after a crash, never repeated in doubt. Declared by name
   * with its definition, because a worker resumes it.
   */
  phased<Input>(
    name: string,
    options: PhasedOptions<Context> & EffectsOnly,
    definition: EffectsDefinition<Input>,
  ): PhasedOperation<Input, Context>
  phased<Input>(
    name: string,
    options: PhasedOptions<Context> & AllSteps,
    definition: Definition<Tx, Input>,
  ): PhasedOperation<Input, Context>
  /**
   * Phased work that a worker begins: the request is answered 202 as soon as it is stored, and `statusOf(latchkey)` of the adapter shows how
   * far it is and how it ended. Needs `createWorkers(latchkey)` somewhere.
   */
  deferred<Input>(
    name: string,
    options: DeferredOptions<Context> & EffectsOnly,
    definition: EffectsDefinition<Input>,
  ): DeferredOperation<Input, Context>
  deferred<Input>(
    name: string,
    options: DeferredOptions<Context> & AllSteps,
    definition: Definition<Tx, Input>,
  ): DeferredOperation<Input, Context>
  readonly outbox: {
    /** In any transaction of the store's database, including your own: the message exists exactly when it has committed. */
    append(tx: unknown, message: OutboxMessage): Promise<void>
  }
  readonly [engine]: LatchkeyEngine<Tx, Context>
}

export interface LatchkeyEngine<Tx, Context> extends Internals<Tx> {
  /** The newest version of every operation, by name, in the order of declaration. */
  readonly declared: ReadonlyMap<string, DeclaredOperation<Context>>
  /** For the `statusOf` of the adapters. */
  readonly statuses: Statuses<Context>
}

/** What background work needs of a Latchkey. */
export interface Internals<Tx> {
  readonly store: Store<Tx>
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** The newest declared version of each phased or deferred operation, by name; it also resumes rows of the older ones. */
  readonly phased: ReadonlyMap<string, { readonly [engine]: Resumer }>
  /** Ends rows of operations that are not declared here, once their deadline has passed. */
  readonly overdue: Resumer
  /** Of every operation that is declared here, by name. */
  readonly kinds: ReadonlyMap<string, OperationKind>
  /** Of an operation that is not declared here, the defaults. */
  retentionOf(operation: string): Retention
  /** The lease of a whole execution. Undefined: atomic work has none, every step of phased work its own, or it is not declared here. */
  leaseMsOf(operation: string): number | undefined
  /** What a failure half-way means. Undefined: it is not guarded work, or not declared here. */
  onFailureOf(operation: string): Settings['onFailure'] | undefined
  /** Of `audit`; undefined: nothing is recorded. */
  readonly trail: Trail | undefined
  /** Sweeping and reaping, which workers take over where they run. */
  readonly maintenance: Maintenance
  /** Messages that consumers have parked. */
  readonly inbox: InboxHost
  /** Aborted when `close` is called. */
  readonly closing: AbortSignal
}

export function createLatchkey<Context = unknown>(
  options: LatchkeyOptions<never, Context> & { readonly store: StoreWithoutTransactions },
): LatchkeyWithoutTransactions<Context>
export function createLatchkey<Tx, Context = unknown>(options: LatchkeyOptions<Tx, Context>): Latchkey<Tx, Context>
export function createLatchkey<Tx, Context = unknown>(options: LatchkeyOptions<Tx, Context>): Latchkey<Tx, Context> {
  checkLatchkeyOptions(options)
  const { core, ring } = coreOf(options)
  const { store, clock } = core
  const shared = sharedOf(core, options)
  const { kinds, declare } = declaredKinds(store)
  const definitions = new Map<string, Map<number, DeclaredVersion<Tx>>>()
  const phased = new Map<string, DefinedOperation<never, Context>>()
  const append = appender(store, clock)
  const declared = new Map<string, DeclaredOperation<Context>>()
  const retentionOf = (operation: string) => declared.get(operation)?.[engine].settings ?? settingsOf(operation, {})

  function declareDefined({ name, kind, steps }: Declaration) {
    declare({ name, kind, steps })
    const versions = definitions.get(name) ?? new Map<number, DeclaredVersion<Tx>>()
    definitions.set(name, versions)
    return { name, parts: phasedParts(store, { name, append, steps }), definitions: versions }
  }

  function remember<O extends DeclaredOperation<Context>>(operation: O): O {
    declared.set(operation.name, operation)
    return operation
  }

  function rememberDefined(operation: DefinedOperation<never, Context>): void {
    const { name, version } = remember(operation)
    if (version >= (phased.get(name)?.version ?? 0)) phased.set(name, operation)
  }

  return {
    ...operators(core, retentionOf),
    ...storedData(core, options.store, ring),
    atomic(name, given = {}) {
      declare({ name, kind: 'atomic' })
      return remember(atomicOperation(core, shared, { name, options: given }))
    },
    guarded(name, given) {
      declare({ name, kind: 'guarded' })
      return remember(guardedOperation(core, shared, { name, options: given }))
    },
    phased<Input>(
      name: string,
      given: PhasedOptions<Context> & Partial<EffectsOnly>,
      definition: Definition<Tx, Input>,
    ) {
      const parts = declareDefined({ name, kind: 'phased', steps: given?.steps })
      const operation = phasedOperation(core, shared, { ...parts, options: given, definition })
      // Only `resume` is called through this, and it takes no input.
      rememberDefined(operation as PhasedOperation<never, Context>)
      return operation
    },
    deferred<Input>(
      name: string,
      given: DeferredOptions<Context> & Partial<EffectsOnly>,
      definition: Definition<Tx, Input>,
    ) {
      const parts = declareDefined({ name, kind: 'deferred', steps: given?.steps })
      const operation = deferredOperation(core, shared, { ...parts, options: given, definition })
      rememberDefined(operation as DeferredOperation<never, Context>)
      return operation
    },
    outbox: { append: adoptingAppender(store, append) },
    [engine]: {
      ...internalsOf(core, shared, declared),
      ...{ phased, kinds, declared, retentionOf, statuses: statuses(core, shared, phased) },
    },
    identify: parts => identify(parts).id,
    close: ({ timeoutMs = 10_000 } = {}) => close(core, timeoutMs),
  }
}

interface DeclaredKinds {
  readonly kinds: ReadonlyMap<string, OperationKind>
  /** Refuses what the store cannot carry, and a name that has another kind. */
  declare(declaration: Declaration): void
}

function declaredKinds<Tx>(store: Store<Tx>): DeclaredKinds {
  const kinds = new Map<string, OperationKind>()
  return {
    kinds,
    declare(declaration) {
      const { name, kind } = declaration
      checkName(name)
      checkCarried(store, declaration)
      const before = kinds.get(name)
      if (before !== undefined && before !== kind) {
        throw misconfigured(`${name} is declared as ${before} and as ${kind}: an operation name can have only one kind`)
      }
      kinds.set(name, kind)
    },
  }
}

function leasesOf<C>(declared: ReadonlyMap<string, DeclaredOperation<C>>): Internals<unknown>['leaseMsOf'] {
  return name => {
    const operation = declared.get(name)
    return operation?.kind === 'guarded' ? operation[engine].settings.leaseMs : undefined
  }
}

function failuresOf<C>(declared: ReadonlyMap<string, DeclaredOperation<C>>): Internals<unknown>['onFailureOf'] {
  return name => {
    const operation = declared.get(name)
    return operation?.kind === 'guarded' ? operation[engine].settings.onFailure : undefined
  }
}

/** `below`: the store itself, without the encryption. */
function storedData<Tx>(
  core: Core<Tx>,
  below: Store<Tx>,
  ring: Keyring | undefined,
): Pick<Latchkey<Tx, never>, 'rewrap' | 'erase' | 'auditRecords'> {
  return { rewrap: rewrapOf(below, ring), erase: eraser(core), auditRecords: auditReader(core, below) }
}

function coreOf<Tx, C>(options: LatchkeyOptions<Tx, C>): { core: Core<Tx>; ring: Keyring | undefined } {
  const { clock = systemClock, storeTimeoutMs = 2_000, encryption, audit } = options
  const ring = encryption === undefined ? undefined : createKeyring(encryption, clock)
  const recording = recordingStore(options.store, audit)
  const store = ring === undefined ? recording : sealedStore(recording, ring)
  const reported = options.telemetry === undefined ? consoleTelemetry({ clock }) : harmless(options.telemetry)
  const { telemetry, countDuration, end: endRates } = countRates(reported, options.store, clock)
  const trail: TrailMaker = parts => trailOf(options.store, audit, parts)
  const rates = { telemetry, countDuration, endRates }
  return { core: createCore({ ...options, ...rates, store, clock, storeTimeoutMs, trail }), ring }
}

function sharedOf<Tx, C>(core: Core<Tx>, { scope, http = {} }: LatchkeyOptions<Tx, C>): Shared<C> {
  const { clock, telemetry } = core
  return {
    ...{ scope, http, clock, telemetry },
    neverStored: neverStoredOf(http),
    expiryOf: id => expiryOf(core, id),
    inbox: inboxHost(core),
  }
}

function internalsOf<Tx, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  declared: ReadonlyMap<string, DeclaredOperation<C>>,
): Omit<Internals<Tx>, 'phased' | 'kinds' | 'retentionOf'> {
  const { store, clock, telemetry, trail, maintenance, draining } = core
  const overdue = overdueResumer(core, shared)
  const { inbox } = shared
  const of = { leaseMsOf: leasesOf(declared), onFailureOf: failuresOf(declared) }
  return { store, clock, telemetry, overdue, trail, maintenance, inbox, ...of, closing: draining.signal }
}

function neverStoredOf({ neverStore }: Pick<HttpOptions, 'neverStore'>): NeverStored | undefined {
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
  if (!Array.isArray(store.traits?.kinds) || !Array.isArray(store.traits.faculties)) {
    throw misconfigured(
      `the ${store.name} store does not say what it carries: give its traits kinds and faculties, or update it`,
    )
  }
  if (typeof scope !== 'function')
    throw misconfigured('createLatchkey needs a scope: a function of the request, or singleTenant')
}

function checkName(name: string): void {
  if (typeof name === 'string' && /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/.test(name)) return
  throw misconfigured(
    `an operation needs a stable name of letters, digits, '.', '_', ':' or '-', such as payments.create (got ${JSON.stringify(name)})`,
  )
}

/** Read, and not computed: the store wrote it by its own clock, and moved it if the work took long. */
async function expiryOf<Tx>({ calls, store }: Core<Tx>, id: string): Promise<number | undefined> {
  const record = await calls.call('read', () => store.read(id)).catch(() => undefined)
  return record?.state === 'completed' ? record.expiresAtMs : undefined
}
