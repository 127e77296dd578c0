/** Deferred: phased work that a worker begins. The request is answered as soon as it is stored. */
import { misconfigured } from '../../ports/errors.ts'
import type { Answer } from '../answer.ts'
import { engine } from '../internal.ts'
import type { DeferredOperation, DeferredValue, Shared } from '../operation.ts'
import { deferredChecks } from '../option-checks.ts'
import { boundSettings } from '../options.ts'
import { lookOnly } from '../run/look.ts'
import type { Core } from '../runtime.ts'
import { definedSettings, type DefinitionParts, definitionRunner, type PhasedOptions, phasedValue } from './phased.ts'

/** As of phased work, without what makes a client wait; and its answer is stored, because it is fetched later. */
export interface DeferredOptions<Context = unknown> extends Omit<
  PhasedOptions<Context>,
  'version' | 'respondAsync' | 'onInProgress' | 'waitMs' | 'sensitive'
> {
  /** As of phased work. Default 1. */
  readonly version?: number
  /** A worker must have begun it within this; otherwise it ends in a stored 408. Longer than any outage you want to survive. */
  readonly deadlineMs: number
}

export function deferredOperation<Tx, Input, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  given: DefinitionParts<Tx, Input, DeferredOptions<C>>,
): DeferredOperation<Input, C> {
  const { name, options } = given
  const { version = 1, deadlineMs } = options ?? {}
  if (deadlineMs === undefined) throw misconfigured(`${name}: needs deadlineMs: how long may it wait for a worker?`)
  const parts = { ...given, options: { ...options, version } }
  const settings = boundSettings(definedSettings('deferred', parts, deferredChecks), core, { ...shared, name })
  const runner = definitionRunner(core, shared, { ...parts, settings, deadlineMs })
  return {
    kind: 'deferred',
    name,
    version,
    [engine]: {
      name,
      settings,
      shared,
      deadlineMs,
      execute: runner.defer,
      look: lookOnly(core, settings),
      resume: runner.resume,
    },
    async run({ input, ...rest }) {
      const request = runner.requestOf({ input, ...rest })
      const answer = await runner.defer(request, { input: () => input })
      return deferredValue(name, request.identity.id, answer)
    },
  }
}

function deferredValue(name: string, id: string, answer: Answer): DeferredValue {
  if (answer.kind === 'accepted') return { kind: 'accepted', id }
  return { kind: 'done', id, ...phasedValue(name, answer) }
}
