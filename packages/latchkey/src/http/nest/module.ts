/** Latchkey as a module of the application: provided to its other modules, and closed with it. */
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { callable, having, listOf, waitedMs } from '../../ports/option-kinds.ts'
import type { InjectionToken, NestProvider } from './driver.ts'
import { getLatchkeyToken, token } from './injection.ts'

/** What the module needs of a Latchkey. */
export interface ShutdownHost {
  close(options?: { timeoutMs?: number }): Promise<unknown>
}

export interface LatchkeyModuleOptions {
  /** What `createLatchkey` returned. The module closes it. */
  readonly latchkey: ShutdownHost
  /** How long the shutdown waits for executions whose client has disconnected. Default 10 s, as for `latchkey.close()`. */
  readonly drainMs?: number
}

export interface LatchkeyModuleAsyncOptions {
  /** Modules that export what the factory injects. Default none. */
  readonly imports?: readonly unknown[]
  /** What the factory gets. Default nothing. */
  readonly inject?: readonly InjectionToken[]
  /** Returns what `createLatchkey` returned. The module closes it. */
  readonly useFactory: (...injected: never[]) => ShutdownHost | Promise<ShutdownHost>
  /** As of `forRoot`. */
  readonly drainMs?: number
}

/** A dynamic module as Nest reads it. */
export interface LatchkeyDynamicModule {
  readonly module: typeof LatchkeyModule
  /** Operations are provided in modules that need not import this one. */
  readonly global: true
  // Nest types the modules itself; Latchkey only hands them on.
  readonly imports: never[]
  readonly providers: NestProvider[]
  readonly exports: InjectionToken[]
}

const host = having('what createLatchkey returned,', 'close')
const moduleChecks: ChecksOf<LatchkeyModuleOptions> = { latchkey: host, drainMs: waitedMs }
const anything = { wants: 'a module', fits: (value: unknown) => value !== undefined && value !== null }
const asyncChecks: ChecksOf<LatchkeyModuleAsyncOptions> = {
  imports: listOf(anything),
  inject: listOf(token),
  useFactory: callable,
  drainMs: waitedMs,
}

const shutdown = Symbol('latchkey.shutdown')

/**
 * `imports: [LatchkeyModule.forRoot({ latchkey })]`: provides the Latchkey to `@InjectLatchkey()` and `provideOperation`, and closes it when
 * Nest has closed its server: the shutdown waits for executions that are still running. Optional: `@Idempotent(operation)` works without
 * it, and an application may call `latchkey.close()` itself.
 */
// A class, because Nest identifies modules by their classes.
export class LatchkeyModule {
  static forRoot(options: LatchkeyModuleOptions): LatchkeyDynamicModule {
    checkOptions('LatchkeyModule.forRoot', options, moduleChecks)
    const { latchkey, drainMs } = options
    if (latchkey === undefined)
      throw misconfigured('LatchkeyModule.forRoot needs latchkey: what createLatchkey returned')
    return dynamicModule([], { provide: getLatchkeyToken(), useValue: latchkey }, drainMs)
  }

  /**
   * The Latchkey is made when the application starts, from what Nest injects:
   *
   *   LatchkeyModule.forRootAsync({ imports: [DatabaseModule], inject: [Pool], useFactory: (pool: Pool) => createLatchkey({ … }) })
   */
  static forRootAsync(options: LatchkeyModuleAsyncOptions): LatchkeyDynamicModule {
    checkOptions('LatchkeyModule.forRootAsync', options, asyncChecks)
    const { imports = [], inject = [], useFactory, drainMs } = options
    if (useFactory === undefined)
      throw misconfigured('LatchkeyModule.forRootAsync needs useFactory, which returns what createLatchkey returned')
    const made = async (...injected: never[]) => checked(await useFactory(...injected))
    return dynamicModule(imports, { provide: getLatchkeyToken(), inject: [...inject], useFactory: made }, drainMs)
  }
}

function checked(latchkey: ShutdownHost): ShutdownHost {
  checkOptions('LatchkeyModule.forRootAsync: useFactory', { latchkey }, { latchkey: host })
  if (latchkey !== undefined) return latchkey
  throw misconfigured(
    'LatchkeyModule.forRootAsync: useFactory must return what createLatchkey returned (got undefined)',
  )
}

function dynamicModule(imports: readonly unknown[], provider: NestProvider, drainMs?: number): LatchkeyDynamicModule {
  const closing = {
    provide: shutdown,
    inject: [getLatchkeyToken()],
    useFactory: (latchkey: ShutdownHost) => ({
      onApplicationShutdown: () => latchkey.close(drainMs === undefined ? {} : { timeoutMs: drainMs }),
    }),
  }
  return {
    module: LatchkeyModule,
    global: true,
    imports: imports as never[], // checked by Nest, which says what is wrong with them
    providers: [provider, closing],
    exports: [getLatchkeyToken()],
  }
}
