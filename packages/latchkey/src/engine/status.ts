/** The status of work, for its own caller. Any other caller does not learn that it exists. */
import { isSealedOutcome } from '../ports/sealed-marks.ts'
import { encryptedElsewhere } from './rules/decide.ts'
import type { Outcome } from '../ports/outcome.ts'
import type { KeyRecord, ReadableRecord } from '../ports/store.ts'
import { engine } from './internal.ts'
import { gatesOf } from './limits/gates.ts'
import type { Core } from './runtime.ts'
import { isRowId, scopeText } from './request.ts'
import type { DefinedOperation, Shared } from './operation.ts'
import { upgraded } from './run/answer-from-row.ts'

export type Status =
  | {
      readonly kind: 'found'
      readonly record: ReadableRecord
      /** The last finished step. */
      readonly step: string | undefined
      /** Of completed work. */
      readonly outcome: Outcome | undefined
    }
  /** Not there, or not this caller's, or of an operation that is not declared here as phased or deferred: one answer for all. */
  | { readonly kind: 'absent' }
  /** Finished, and its outcome is no longer stored. */
  | { readonly kind: 'gone' }
  /** There, and this version cannot read it. */
  | { readonly kind: 'unreadable'; readonly why: string }
  | { readonly kind: 'scope-unresolved' }
  /** The caller has asked too often. */
  | { readonly kind: 'limited'; readonly retryAfterMs: number }
  | { readonly kind: 'unavailable'; readonly cause: unknown }

export interface Statuses<Context> {
  readonly shared: Shared<Context>
  read(id: string, context: Context): Promise<Status>
}

type OperationsByName<C> = ReadonlyMap<string, DefinedOperation<never, C>>

export function statuses<Tx, C>(core: Core<Tx>, shared: Shared<C>, operations: OperationsByName<C>): Statuses<C> {
  // The operation of an id is known when it has been read, so that only the limits of the whole apply.
  const gates = gatesOf(core.limits, undefined)
  return {
    shared,
    async read(id, context) {
      // First, and for every id alike: the refusal of an unresolved scope must not depend on the id.
      const scope = await scopeOf(shared, context)
      if (scope === undefined) return { kind: 'scope-unresolved' }
      const excess = await gates?.lookups.take(scope)
      if (excess !== undefined) {
        core.telemetry.count('limit.refused', { scope, detail: excess.limit })
        await gates?.pace.wait(scope)
        return { kind: 'limited', retryAfterMs: Math.ceil(excess.waitMs) }
      }
      if (!isRowId(id)) return { kind: 'absent' }
      try {
        const record = await core.calls.call('read', () => core.store.read(id))
        const operation = record === undefined ? undefined : operations.get(record.operation)
        if (record === undefined || operation === undefined || record.scope !== scope) return { kind: 'absent' }
        if (record.expired || !(await maySee(operation, context, record))) return { kind: 'absent' }
        if (record.gone) return { kind: 'gone' }
        if (record.state === 'unreadable') return { kind: 'unreadable', why: record.why }
        return await found(core, operation, record)
      } catch (cause) {
        return { kind: 'unavailable', cause }
      }
    },
  }
}

async function scopeOf<C>({ scope, telemetry }: Shared<C>, context: C): Promise<string | undefined> {
  try {
    return scopeText(await scope(context))
  } catch (error) {
    telemetry.report(
      'the scope could not be resolved, so a status was refused: the scope function of createLatchkey gets the context of statusOf as well',
      { error },
    )
    return undefined
  }
}

async function maySee<C>(operation: DefinedOperation<never, C>, context: C, record: KeyRecord): Promise<boolean> {
  const { settings, shared } = operation[engine]
  if (settings.authorizeReplay === undefined) return true
  try {
    return (await settings.authorizeReplay(context, record)) === true
  } catch (error) {
    shared.telemetry.report('authorizeReplay threw, so the status is refused', { operation: operation.name, error })
    return false
  }
}

async function found<Tx, C>(
  core: Core<Tx>,
  operation: DefinedOperation<never, C>,
  record: ReadableRecord,
): Promise<Status> {
  const { id, outcome } = record
  const journal = await core.calls.call('read journal', async () => core.store.steps?.readJournal(id))
  if (journal !== undefined && journal.steps === undefined) return { kind: 'unreadable', why: journal.why }
  if (outcome !== undefined && isSealedOutcome(outcome)) return { kind: 'unreadable', why: encryptedElsewhere }
  const step = journal?.steps.findLast(({ state }) => state === 'done')?.name
  return { kind: 'found', record, step, outcome: outcome && upgraded(core, operation[engine].settings, outcome) }
}
