/** Ends Latchkey together with the application. */

import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { having, waitedMs } from '../../ports/option-kinds.ts'

/** What the module needs of a Latchkey. */
export interface ShutdownHost {
  close(options?: { timeoutMs?: number }): Promise<unknown>
}

export interface LatchkeyModuleOptions {
  readonly latchkey: ShutdownHost
  /** How long the shutdown waits for executions whose client has disconnected. Default 10 s, as for `latchkey.close()`. */
  readonly drainMs?: number
}

/** A dynamic module as Nest reads it. */
export interface LatchkeyDynamicModule {
  readonly module: typeof LatchkeyModule
  readonly providers: { provide: symbol; useValue: object }[]
}

const moduleChecks: ChecksOf<LatchkeyModuleOptions> = {
  latchkey: having('what createLatchkey returned,', 'close'),
  drainMs: waitedMs,
}

const shutdown = Symbol('latchkey.shutdown')

/**
 * `imports: [LatchkeyModule.forRoot({ latchkey })]`: when Nest has closed its server, waits for executions that are still running. Optional:
 * `@Idempotent()` works without it, and an application may call `latchkey.close()` itself.
 */
// A class, because Nest identifies modules by their classes.
export class LatchkeyModule {
  static forRoot(options: LatchkeyModuleOptions): LatchkeyDynamicModule {
    checkOptions('LatchkeyModule.forRoot', options, moduleChecks)
    const { latchkey, drainMs } = options
    if (latchkey === undefined)
      throw misconfigured('LatchkeyModule.forRoot needs latchkey: what createLatchkey returned')
    const onApplicationShutdown = () => latchkey.close(drainMs === undefined ? {} : { timeoutMs: drainMs })
    return { module: LatchkeyModule, providers: [{ provide: shutdown, useValue: { onApplicationShutdown } }] }
  }
}
