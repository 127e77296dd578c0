/** What an operator does with rows: list, inspect, settle, forget. Every act carries a name and a reason, which are stored. */
import { LatchkeyError, misconfigured } from '../ports/errors.ts'
import type { Outcome } from '../ports/outcome.ts'
import type { FoundVerdict } from '../ports/reconciliation.ts'
import type { Act, ForgetResult, KeyRecord, Listing, Page, SettleResult, State, UnparkResult } from '../ports/store.ts'
import type { Core } from './runtime.ts'
import { isSealedOutcome } from '../ports/sealed-marks.ts'
import { referenceFault } from './run/references.ts'
import { boundedJson } from './steps/json.ts'
import { withoutBody } from './rules/judge.ts'
import { identify, type IdentityParts, isRowId, type Scope, scopeText } from './request.ts'
import { type InspectedRow, inspectedRow } from './inspected-row.ts'
import type { Settings } from './options.ts'

/** A row, by the parts of its identity or by its id from a listing or a log line. */
export type RowName = IdentityParts | { readonly id: string }

export type FindWhat = RowName | { readonly reference: string }

/**
 * What an operator found out. `declined` is `happened` with a refusal for an answer (the card was not charged, and will not be).
 *
 * Guarded work, and phased work that has no effect open, needs the whole answer, as `status` and `json` or as an `outcome`: clients get it
 * from now on. Phased and deferred work with an effect open needs the `value` of that effect, as its function would have returned it: the
 * remaining steps run with it. `never-happened`: guarded work runs with the next request; phased work tries the effect again, with
 * another downstream key.
 */
export type OperatorVerdict =
  | { readonly kind: 'happened' | 'declined'; readonly status: number; readonly json: unknown }
  | { readonly kind: 'happened' | 'declined'; readonly outcome: Outcome }
  | { readonly kind: 'happened' | 'declined'; readonly value: unknown }
  | { readonly kind: 'never-happened' }

export interface Operators {
  /** Rows in a stable order, a page at a time. `state: 'unknown'` is the work queue. Without outcomes. */
  list(filter?: {
    state?: State
    /** Only the dead letters: rows that wait for an operator. */
    parked?: true
    operation?: string
    /** One tenant's rows: a scope as your scope function returns it. */
    scope?: Scope
    limit?: number
    after?: string
  }): Promise<Page>
  /**
   * The row of a key, or the rows to which a handler has given this reference; at most 100, without outcomes. The key itself is not stored: it is
   * found by its hash.
   */
  find(what: FindWhat): Promise<readonly KeyRecord[]>
  /** One row with its outcome, steps, evidence, references and audit; the audit also after it was forgotten. */
  inspect(row: RowName): Promise<InspectedRow>
  /**
   * Ends an `unknown`. The verdict, its author and the reason are committed with it. `wrong-verdict`: nothing was changed; `needs` says whether the row
   * needs the `value` of its open effect, which `effect` names, or the `outcome` of the whole.
   */
  settle(row: RowName, verdict: OperatorVerdict, act: Act): Promise<SettleResult>
  /**
   * Deletes a `completed` row, so that its key is new again; also one that cannot be read and has no owner. Every other state is
   * `wrong-state`, and there is no way to force it: the key would run beside its owner, or repeat an effect in doubt. End an `unknown` with
   * `settle`.
   */
  forget(row: RowName, act: Act): Promise<ForgetResult>
  /** Resumes a parked row: due now, with its crash count reset. */
  unpark(row: RowName, act: Act): Promise<UnparkResult>
}

/** How long the operation of a row retains its outcomes, their version, and whether their bodies are stored. */
export type Retention = Pick<Settings, 'retentionMs' | 'outcomeVersion' | 'sensitive'>

const pageDefault = 100
const pageMax = 1_000

export function operators<Tx>({ store, calls }: Core<Tx>, retentionOf: (operation: string) => Retention): Operators {
  async function idsOf(reference: string): Promise<readonly string[]> {
    const fault = referenceFault(reference)
    if (fault !== undefined) throw misconfigured(`find: ${fault}`)
    const { references } = store
    if (references === undefined)
      throw misconfigured(`find: the ${store.name} store has no references (traits.faculties)`)
    const found = await calls.call('find', () => references.find(reference, { limit: pageDefault }))
    return [...new Set(found.map(({ id }) => id))]
  }

  return {
    async list({ limit = pageDefault, scope, ...filter } = {}) {
      if (filter.after !== undefined) checkId(filter.after)
      if (!Number.isInteger(limit)) throw misconfigured(`list: limit must be an integer (got ${limit})`)
      const ofScope = scope === undefined ? {} : { scope: scopeText(scope) }
      const listing: Listing = { ...filter, ...ofScope, limit: Math.max(1, Math.min(limit, pageMax)) }
      return calls.call('list', () => store.list(listing))
    },
    async find(what) {
      const ids = 'reference' in what ? await idsOf(what.reference) : [idOf(what)]
      const records = await Promise.all(ids.map(id => calls.call('read', () => store.read(id))))
      return records.flatMap(record => (record === undefined ? [] : [{ ...record, outcome: undefined }]))
    },
    async inspect(row) {
      const id = idOf(row)
      const found = await calls.call('inspect', () => store.inspect(id))
      const isPhased = found.record?.recovery === 'resume'
      const journal = isPhased ? await calls.call('inspect', async () => store.steps?.readJournal(id)) : undefined
      const references = await calls.call('inspect', async () => store.references?.of(id))
      return inspectedRow(id, found, { journal, references })
    },
    async settle(row, verdict, act) {
      checkAct('settle', act)
      const id = idOf(row)
      // A row whose owner is long dead is `unknown` in all but name: the sweep moves it, then it is settled.
      const swept = await calls.call('sweep', () => store.sweep({ limit: 1, id }))
      const operation = swept[0]?.operation ?? (await calls.call('read', () => store.read(id)))?.operation
      if (operation === undefined) return { kind: 'not-found' }
      const { retentionMs, outcomeVersion, sensitive } = retentionOf(operation)
      const stored = storableVerdict(storedVerdict(verdict, outcomeVersion), sensitive)
      return calls.call('settle', () => store.settle(id, stored, act, retentionMs))
    },
    async forget(row, act) {
      checkAct('forget', act)
      const id = idOf(row)
      return calls.call('forget', () => store.forget(id, act))
    },
    async unpark(row, act) {
      checkAct('unpark', act)
      return calls.call('unpark', () => store.unpark(idOf(row), act))
    },
  }
}

function idOf(row: RowName): string {
  return 'id' in row ? checkId(row.id) : identify(row).id
}

/** A store would report it as a failure of its own, and a few typing errors would open the circuit for every client. */
function checkId(id: string): string {
  if (isRowId(id)) return id
  // What was given may be a key, and errors reach logs.
  throw misconfigured(
    `a row id must be one of list() or of a log line (got another text of ${id.length} characters). To find a row by its key, give { scope, operation, key }`,
  )
}

/** Refused before anything is asked of the store. */
export function checkAct(name: string, { by, reason }: Act): void {
  if (by?.trim() && reason?.trim()) return
  throw new LatchkeyError(
    'misconfigured',
    `${name} needs { by, reason }: who decides this, and why. Both are stored for good`,
  )
}

/** What an operation that is sensitive does not store is not stored from evidence either. */
export function storableVerdict(verdict: FoundVerdict, sensitive: boolean): FoundVerdict {
  if (!sensitive || !('outcome' in verdict) || !verdict.outcome.body?.byteLength) return verdict
  return { ...verdict, outcome: withoutBody(verdict.outcome) }
}

function checkedOutcome(outcome: Outcome): Outcome {
  if (!isSealedOutcome(outcome)) return outcome
  throw misconfigured('settle: a header of the outcome has no name')
}

export function storedVerdict(verdict: OperatorVerdict, version: number): FoundVerdict {
  if (verdict.kind === 'never-happened') return verdict
  const { kind } = verdict
  if ('value' in verdict) return { kind, value: boundedJson('settle: the value', verdict.value) }
  const { status } = 'outcome' in verdict ? verdict.outcome : verdict
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw misconfigured(
      `settle needs the status of an answer, 200 to 599 (got ${status}). For an effect of phased work, give { value }`,
    )
  }
  if ('outcome' in verdict) return { kind, outcome: checkedOutcome(verdict.outcome) }
  // `json: undefined` is an answer without a body, as from a function that returns nothing.
  const body = Buffer.from(JSON.stringify(verdict.json) ?? '')
  return { kind, outcome: { status: verdict.status, headers: [['content-type', 'application/json']], body, version } }
}
