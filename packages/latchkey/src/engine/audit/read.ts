/** Reading the trail, a page at a time. */
import { checkOptions } from '../../ports/check-options.ts'
import type { AuditPage } from '../../ports/faculties/audit-records.ts'
import type { Store } from '../../ports/store.ts'
import { auditReadChecks } from '../option-checks.ts'
import { type Scope, scopeText } from '../request.ts'
import type { Core } from '../runtime.ts'
import { recordsOf } from './trail.ts'

export interface AuditReadOptions {
  /** One tenant's lines: a scope as your scope function returns it. */
  readonly scope?: Scope
  /** The lines of one row, by its id. */
  readonly id?: string
  /** Not before this, in milliseconds since 1970. */
  readonly fromMs?: number
  /** Default 100, at most 1,000. */
  readonly limit?: number
  /** The `next` of the page before. */
  readonly after?: string
}

export type ReadAuditRecords = (options?: AuditReadOptions) => Promise<AuditPage>

const pageDefault = 100

/** `below`: the store itself. */
export function auditReader<Tx>({ calls }: Core<Tx>, below: Store<Tx>): ReadAuditRecords {
  return async (options = {}) => {
    checkOptions('auditRecords', options, auditReadChecks)
    const { scope, limit = pageDefault, ...rest } = options
    const ofScope = scope === undefined ? {} : { scope: scopeText(scope) }
    const records = recordsOf(below)
    return calls.call('audit', () => records.page({ ...rest, ...ofScope, limit }))
  }
}
