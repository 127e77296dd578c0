/** What a person does with rows: look, settle, forget. Every act carries a name and a reason and is kept. */
import { LatchkeyError } from '../ports/errors.ts'
import type { Outcome } from '../ports/outcome.ts'
import type { Act, ForgetResult, Inspection, Listing, Page, SettleResult, State } from '../ports/store.ts'
import type { Core } from './core.ts'
import { identify, type IdentityParts } from './identity.ts'
import type { Settings } from './settings.ts'

/** A row, by what was asked or by its id from a listing or a log line. */
export type RowName = IdentityParts | { readonly id: string }

/** It happened, and clients get this answer from now on; or it never happened, and the next request runs. */
export type OperatorVerdict =
  | { readonly kind: 'happened'; readonly status: number; readonly json: unknown }
  | { readonly kind: 'happened'; readonly outcome: Outcome }
  | { readonly kind: 'never-happened' }

export interface Operators {
  /** Rows in a stable order, a page at a time. `state: 'unknown'` is the work queue. Without outcomes. */
  list(filter?: { state?: State; operation?: string; limit?: number; after?: string }): Promise<Page>
  /** One row with its outcome, evidence and audit; also after it was forgotten. */
  inspect(row: RowName): Promise<Inspection>
  /** Ends an `unknown`. The verdict, who gave it and why are committed with it. */
  settle(row: RowName, verdict: OperatorVerdict, act: Act): Promise<SettleResult>
  /** Deletes a `completed` row, so that its key is new again. */
  forget(row: RowName, act: Act): Promise<ForgetResult>
}

/** How the operation of a row keeps its outcomes. */
export type Keeping = Pick<Settings, 'retentionMs' | 'outcomeVersion'>

const pageDefault = 100
const pageMax = 1_000

export function operators<Tx>({ store, calls }: Core<Tx>, keeping: (operation: string) => Keeping): Operators {
  return {
    list({ limit = pageDefault, ...filter } = {}) {
      const listing: Listing = { ...filter, limit: Math.max(1, Math.min(limit, pageMax)) }
      return calls.call('list', () => store.list(listing))
    },
    inspect: row => calls.call('inspect', () => store.inspect(idOf(row))),
    async settle(row, verdict, act) {
      checkAct('settle', act)
      const id = idOf(row)
      // A row whose owner is long dead is `unknown` in all but name: name it, then settle it.
      const swept = await calls.call('sweep', () => store.sweep({ limit: 1, id }))
      const operation = swept[0]?.operation ?? (await calls.call('read', () => store.read(id)))?.operation
      if (operation === undefined) return { kind: 'not-found' }
      const { retentionMs, outcomeVersion } = keeping(operation)
      return calls.call('settle', () => store.settle(id, storedVerdict(verdict, outcomeVersion), act, retentionMs))
    },
    async forget(row, act) {
      checkAct('forget', act)
      return calls.call('forget', () => store.forget(idOf(row), act))
    },
  }
}

function idOf(row: RowName): string {
  return 'id' in row ? row.id : identify(row).id
}

function checkAct(name: string, { by, reason }: Act): void {
  if (by?.trim() && reason?.trim()) return
  throw new LatchkeyError(
    'misconfigured',
    `${name} needs { by, reason }: who decides this, and why. Both are kept for good`,
  )
}

function storedVerdict(
  verdict: OperatorVerdict,
  version: number,
): { kind: 'happened'; outcome: Outcome } | { kind: 'never-happened' } {
  if (verdict.kind === 'never-happened' || 'outcome' in verdict) return verdict
  // `json: undefined` is an answer without a body, as from a function that returns nothing.
  const body = Buffer.from(JSON.stringify(verdict.json) ?? '')
  return {
    kind: 'happened',
    outcome: { status: verdict.status, headers: [['content-type', 'application/json']], body, version },
  }
}
