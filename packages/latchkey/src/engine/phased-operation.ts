/** Declaring a phased operation, and the three ways into it: a request, a plain call, a worker. */
import { misconfigured } from '../ports/errors.ts'
import type { Answer, Attempt, ExecuteRequest } from './answer.ts'
import type { Core } from './core.ts'
import { boundedJson } from './json-outcome.ts'
import type { PhasedOperation, PhasedValue, Resumed, Shared } from './operation.ts'
import { type Definition, executePhased, type PhasedParts } from './phased.ts'
import { executeRequest, outcomeOf } from './plain-function.ts'
import { type OperationOptions, type Settings, settingsOf } from './settings.ts'
import { tracked, withWaiting } from './waiting.ts'

export interface PhasedOptions<Context = unknown> extends OperationOptions<Context> {
  /** Rises whenever the steps or their meaning change. Rows of a version that is still declared drain with it; others are parked. */
  readonly version: number
  /** How long a step may be silent. Default 30 s; an effect with a longer `timeoutMs` gets a longer lease by itself. */
  readonly leaseMs?: number
}

export interface DeclaredPhased<Tx, Input, C> {
  readonly name: string
  readonly options: PhasedOptions<C>
  readonly parts: PhasedParts<Tx>
  /** Shared by all versions of this name in this process. */
  readonly definitions: Map<number, Definition<Tx, never>>
  readonly definition: Definition<Tx, Input>
}

export function phasedOperation<Tx, Input, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  { name, options, parts, definitions, definition }: DeclaredPhased<Tx, Input, C>,
): PhasedOperation<Input, C> {
  const { version } = options
  if (!Number.isInteger(version) || version < 1)
    throw misconfigured(`${name}: version must be 1, 2, 3 … and is ${version}`)
  if (typeof definition !== 'function')
    throw misconfigured(`${name}: a phased operation needs its definition as third argument`)
  const settings = settingsOf(name, options)
  if (settings.missingKey === 'run-unprotected') {
    throw misconfigured(
      `${name}: a phased operation needs a key, because its steps are kept under it. Leave missingKey at 'refuse'`,
    )
  }
  // Stored and given back as the Input it was declared with.
  definitions.set(version, definition as unknown as Definition<Tx, never>)

  function execute(request: ExecuteRequest, input: string): Promise<Answer> {
    const work = (run: () => Promise<Attempt>) => run()
    const once = (start: typeof work) =>
      executePhased(core, settings, { request, parts, version, input, definitions, start })
    return tracked(core, withWaiting(core, settings, { id: request.identity.id, work, once }))
  }
  return {
    kind: 'phased',
    name,
    version,
    settings,
    shared,
    executeInput: async (request, input) => execute(request, inputText(name, input)),
    async run(given) {
      const request = executeRequest(name, settings, given)
      return phasedValue(name, await execute(request, inputText(name, given.input)))
    },
    async resume({ identity, fingerprint }) {
      // A worker knows no key: it is not stored, and the definition is not given one.
      const request = { identity, key: '', fingerprint, description: undefined }
      const waitless: Settings<C> = { ...settings, whenInProgress: 'refuse' }
      const start = (run: () => Promise<Attempt>) => run()
      const answer = await tracked(
        core,
        executePhased(core, waitless, { request, parts, version, input: undefined, definitions, start }),
      )
      return resumed(answer)
    },
  }
}

function inputText(name: string, input: unknown): string {
  return boundedJson(`${name}: the input`, input) ?? 'null'
}

function phasedValue(name: string, answer: Answer): PhasedValue {
  const { status, headers, body } = outcomeOf(name, answer)
  const text = new TextDecoder().decode(body)
  return { status, headers, value: text === '' ? undefined : JSON.parse(text) }
}

function resumed(answer: Answer): Resumed {
  if (answer.kind === 'executed') return answer.stored === 'yes' ? 'completed' : 'failed'
  if (answer.kind === 'replayed') return 'not-mine'
  const { code, ownAttempt } = answer.refusal
  if (code === 'parked') return 'parked'
  if (code === 'outcome-unknown' && ownAttempt) return 'unknown'
  return code === 'store-unavailable' ? 'failed' : 'not-mine'
}
